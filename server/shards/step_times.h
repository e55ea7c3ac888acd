// StepTimes measures how long each worker takes for a step, as one shard sees it: from the answer
// to the worker's read of the step to its push, accepted or late. The time contains computing and
// sending, but not the wait for other workers. Callers pass the current time. Not thread-safe.
#ifndef THINWIRE_SERVER_SHARDS_STEP_TIMES_H_
#define THINWIRE_SERVER_SHARDS_STEP_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// The seconds of the last steps of each worker, oldest first.
using StepSeconds = std::vector<std::vector<double>>;

class StepTimes {
 public:
  // The largest number of times that are kept for a worker.
  static constexpr size_t kWindow = 100;

  explicit StepTimes(uint32_t max_workers) : workers_(max_workers) {}

  // Records EVENT, which the shard has applied at NOW with these effects. The times of a worker
  // that joins, leaves or loses its lease are dropped.
  void Record(const Event& event, const Effects& effects, absl::Time now);

  // Returns the times of the workers with numbers below WORKERS.
  StepSeconds Of(uint32_t workers) const;
  // Returns the median of the seconds per example in the last steps of WORKER that had examples, at
  // most MOST; nullopt if there are fewer than LEAST.
  std::optional<double> SecondsPerExample(WorkerId worker, size_t least, size_t most) const;
  // Returns the mean number of examples in the last pushes of these workers; 0 if none has pushed.
  double ExamplesPerPush(uint32_t workers) const;

 private:
  struct BegunStep {
    Step step;
    absl::Time time;
  };
  struct FinishedStep {
    double seconds = 0;
    uint32_t examples = 0;
  };
  struct Worker {
    std::optional<BegunStep> begun;
    std::deque<FinishedStep> steps;  // the last ones, oldest first
    uint32_t examples = 0;           // of the last push with examples
  };

  void Finish(const PushEvent& push, const Judgement& judgement, absl::Time now);

  std::vector<Worker> workers_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STEP_TIMES_H_
