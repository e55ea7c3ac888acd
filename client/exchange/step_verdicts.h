// StepVerdicts collects the verdicts of one step and determines the next step.
//
//   no push was late      step + 1
//   any push was late     max(step + 1, largest frontier in the verdicts)
//
// The frontier in a verdict is the shard's current step at the server. A slow worker therefore
// skips directly to the current step, and reads every shard for the same step.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_VERDICTS_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_VERDICTS_H_

#include <algorithm>
#include <cstdint>

#include "common/base/ids.h"

namespace thinwire::client {

// Not thread-safe.
class StepVerdicts {
 public:
  StepVerdicts(Step step, uint32_t shard_count) : step_(step), missing_count_(shard_count) {}

  // Adds the verdict of one shard's push: LATE is true if the push was late, and FRONTIER is the
  // shard's current step at the server. Call once per shard.
  void Add(bool late, Step frontier) {
    late_ = late_ || late;
    frontier_ = std::max(frontier_, frontier);
    --missing_count_;
  }

  bool complete() const { return missing_count_ == 0; }
  bool late() const { return late_; }
  Step step() const { return step_; }
  // Returns the next step. REQUIRES: complete().
  Step next() const { return late_ ? std::max(step_ + 1, frontier_) : step_ + 1; }

 private:
  Step step_;
  uint32_t missing_count_;
  bool late_ = false;
  Step frontier_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_VERDICTS_H_
