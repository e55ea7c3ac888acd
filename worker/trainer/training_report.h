// TrainingReport sums up a worker's training and writes its progress as events (events.h). Times are
// measured from the arrival of the first parameters and exclude evaluation.
#ifndef THINWIRE_WORKER_TRAINER_TRAINING_REPORT_H_
#define THINWIRE_WORKER_TRAINER_TRAINING_REPORT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "worker/models/model.h"
#include "worker/trainer/evaluator.h"
#include "worker/trainer/numeric_watch.h"
#include "worker/trainer/trainer_parts.h"

namespace thinwire {

// Not thread-safe.
class TrainingReport {
 public:
  // All arguments must outlive this object. STOPWATCH measures the training.
  TrainingReport(const TrainerOptions& options, const TrainerParts& parts,
                 const NumericWatch& numbers, const Evaluator& evaluator,
                 const Stopwatch& stopwatch)
      : options_(options),
        parts_(parts),
        numbers_(numbers),
        evaluator_(evaluator),
        stopwatch_(stopwatch) {}

  // Adds the result of a forward and backward pass.
  void AddPass(const BatchResult& result);
  // Adds a finished step, which took TIME.
  void AddStep(absl::Duration time);
  // Returns the median time of a step; 0 before the first one.
  absl::Duration median_step() const;

  void Joined(Step step);
  // Reports the progress after STEP, also to the lead, unless the last report of a step was shortly
  // before.
  void Progress(Step step);
  // Reports the end of an epoch with the evaluator's last test.
  void FinishEpoch(uint64_t epoch);
  // LOST_RESIDUAL: the L1 norm of the residual that the worker left with; nullopt: unknown.
  void Done(TrainingEnding ending, std::optional<double> lost_residual);

 private:
  const TrainerOptions& options_;
  const TrainerParts& parts_;
  const NumericWatch& numbers_;
  const Evaluator& evaluator_;
  const Stopwatch& stopwatch_;
  uint64_t steps_ = 0;
  uint64_t examples_ = 0;
  std::vector<float> step_seconds_;
  BatchResult since_report_;
  std::optional<absl::Time> last_report_;
  BatchResult epoch_;       // training result of the current epoch
  BatchResult last_epoch_;  // training result of the last finished epoch
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_TRAINING_REPORT_H_
