// Evaluator tests the model and writes the model file, if this worker is the one whom the lead has
// appointed (Members::Evaluator), normally worker 0.
//
// At the end of each epoch the evaluator tests its own replica and buffers.
// If the servers average the parameters, it reads the averages and tests them with its buffers. In
// the async and ssp modes, other workers reach the end of the epoch at other times.
//
// If there is a model file (model_output.h), the evaluator does not leave before every other worker
// has left, because the servers' parameters are final only after the last worker has left. It then
// leaves, reads these parameters, tests them and writes the file, also after a symptom of
// divergence. A worker that was stopped, that stopped at a loss that is not finite, or whose final
// parameters compute no finite test loss after a symptom, writes no final file.
//
// In a trial of push: adaptive (docs/adaptive_precision.md), the evaluator also tests its replica
// before the first step, seven times in between, and after the last step, and the client sends the
// accuracies to the lead.
#ifndef THINWIRE_WORKER_TRAINER_EVALUATOR_H_
#define THINWIRE_WORKER_TRAINER_EVALUATOR_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "worker/models/model.h"
#include "worker/trainer/model_output.h"
#include "worker/trainer/numeric_watch.h"
#include "worker/trainer/trainer_parts.h"
#include "worker/trainer/trial_tests.h"

namespace thinwire {

// Not thread-safe.
class Evaluator {
 public:
  // All arguments must outlive this object. STOPWATCH measures the training; it is stopped during
  // tests.
  Evaluator(const TrainerOptions& options, const TrainerParts& parts, const NumericWatch& numbers,
            Stopwatch& stopwatch);

  // Returns whether this worker is the evaluator. The first call may block for up to two heartbeats.
  absl::StatusOr<bool> IsAppointed();
  // Tests the parameters of STEP, the next step, and tells the lead the result.
  absl::Status Test(Step step);
  // Returns the result of the last test since ForgetTest.
  const std::optional<BatchResult>& test() const { return test_; }
  void ForgetTest() { test_.reset(); }

  // Writes the model that Test() has tested after EPOCH, if it is the best and the best is kept.
  // Logs an error instead of returning it, because the end of a later epoch may succeed.
  void KeepBest(uint64_t epoch);
  // Blocks until every other worker has left, so that this worker writes the final model.
  // REQUIRES: there is a model file.
  absl::Status AwaitOthers();
  // Returns whether WriteOutput is to be called: AwaitOthers has returned OK.
  bool writes_output() const { return writes_output_; }
  // Tests the final parameters and, unless they are useless, writes the model file. Tries again
  // until the file is written or `stop` returns true. Returns whether it is not missing. Errors:
  // those of the client and the model; InvalidArgument for a model or a path that no file can have.
  // REQUIRES: this worker has left.
  absl::StatusOr<bool> WriteOutput();
  // Returns the final model file that this worker has written; null if it has written none.
  const ModelOutput* final_output() const {
    return writes_output_ && output_->written() ? &*output_ : nullptr;
  }

  // Returns whether the job has trials of push: adaptive.
  bool has_trials() const { return trial_tests_.has_value(); }
  // Returns whether STEP lies in a trial that the lead will end.
  bool IsInTrial(Step step) const;
  // Returns whether STEP follows the last step of a trial. The lead deals it after the last test.
  bool FollowsTrial(Step step) const { return TrialEnd() == step; }
  // If the trial is tested before STEP, measures its time, and the evaluator tests its replica. At
  // the end of the trial, blocks until the test is made or the lead has decided.
  absl::Status TestTrial(Step step);

 private:
  // Returns the step after the last one of the present trial; nullopt: there is no trial.
  std::optional<Step> TrialEnd() const;
  // Returns the test result of the parameters that the evaluator tests.
  absl::StatusOr<BatchResult> TestParameters();
  // Returns true if the run has a symptom of divergence and the tested parameters compute no finite
  // loss. No file is written with them.
  bool IsUseless(const BatchResult& test) const;

  const TrainerOptions& options_;
  const TrainerParts& parts_;
  const NumericWatch& numbers_;
  Stopwatch& stopwatch_;
  std::optional<BatchResult> test_;
  std::optional<ModelOutput> output_;
  bool writes_output_ = false;
  std::optional<TrialTests> trial_tests_;  // set with push: adaptive
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_EVALUATOR_H_
