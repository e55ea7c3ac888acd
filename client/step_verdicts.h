// StepVerdicts: gathers the verdicts of one step and says which step comes next.
//
//   no shard was late     step + 1
//   late anywhere         max(step + 1, the largest frontier of any verdict), once all are in
//
// So a straggler catches up in one jump, and every shard is read for the same step.
#ifndef THINWIRE_CLIENT_STEP_VERDICTS_H_
#define THINWIRE_CLIENT_STEP_VERDICTS_H_

#include <algorithm>
#include <cstdint>

#include "common/ids.h"

namespace thinwire::client {

// Not thread-safe.
class StepVerdicts {
 public:
  void Begin(Step step, uint32_t shard_count) {
    *this = StepVerdicts();
    step_ = step;
    missing_count_ = shard_count;
  }

  // One verdict of a push of this step; once per shard.
  void Add(bool late, Step frontier) {
    late_ = late_ || late;
    frontier_ = std::max(frontier_, frontier);
    --missing_count_;
  }

  bool complete() const { return missing_count_ == 0; }
  Step step() const { return step_; }
  // REQUIRES: complete().
  Step next() const { return late_ ? std::max(step_ + 1, frontier_) : step_ + 1; }

 private:
  Step step_;
  uint32_t missing_count_ = 0;
  bool late_ = false;
  Step frontier_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_STEP_VERDICTS_H_
