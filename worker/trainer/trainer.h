// Trainer runs a worker's training loop with a client (client/client.h), a model and a dataset.
//
//   join         wait for the parameters; when joining a running job, recompute the model's buffers
//   each step    wait until the step's deal is known; save the state if the servers make a checkpoint
//                of the step (SavedTraining); train it (StepRunner)
//   each epoch   the evaluator tests its replica, or the servers' averages (Evaluator)
//   stop         after `stop` returned true, if all live workers stop and their state survives: run
//                the steps that another one has run already, so that all stop before the same step
//   drain        after `stop` returned true otherwise, or if an operator has removed the worker: run
//                one more step whose pushes empty the residual
//   leave        after the last step, earlier if `stop` returns true, if the loss is not finite or
//                if an operator has removed the worker, or after an error
//   write        the evaluator writes the model file, if there is one
//
// The sampler says to which epoch a step belongs, and thus when the run is over; the number of
// steps changes when examples are dealt anew (deal_plan.h). If the worker is behind the job,
// NextStep skips steps. If NextStep skips the last step of an epoch, the worker finishes the epoch
// after NextStep.
//
// If the servers continue from an earlier step, the worker joins again and goes on from that step.
// An epoch that ends again is evaluated again.
//
// If the run diverges (NumericWatch), the events say so with the symptom and the advice of the
// options. A loss that is not finite ends the worker's training after that step, if
// `stop_on_divergence` is set; in a trial of push: adaptive it does not, because the trial can be
// discarded.
#ifndef THINWIRE_WORKER_TRAINER_TRAINER_H_
#define THINWIRE_WORKER_TRAINER_TRAINER_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "worker/trainer/evaluator.h"
#include "worker/trainer/numeric_watch.h"
#include "worker/trainer/saved_training.h"
#include "worker/trainer/step_runner.h"
#include "worker/trainer/trainer_parts.h"
#include "worker/trainer/training_report.h"

namespace thinwire {

// Not thread-safe.
class Trainer {
 public:
  using Ending = TrainingEnding;

  Trainer(const TrainerOptions& options, const TrainerParts& parts);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains until the last step or until `stop` returns true. Leaves the job, also after an error.
  // Call Run once. Errors: errors of the client and of the model.
  absl::StatusOr<Ending> Run();

 private:
  // Joins the job and trains until the last step or until `stop` returns true. Begins again after a
  // rollback of the servers.
  absl::StatusOr<Ending> Loop();
  absl::StatusOr<Ending> JoinAndTrain();
  absl::StatusOr<Step> Join();
  bool stop_requested() const { return parts_.stop(absl::ZeroDuration()); }
  // Blocks until the deals up to STEP are known, and passes them to the sampler.
  absl::Status AwaitDeals(Step step);
  bool is_over(Step step) const { return parts_.sampler.epoch(step) >= options_.epochs; }
  // Waits for the parameters of STEP, the first step of this process, and recomputes the buffers if
  // the job has already begun.
  absl::Status AwaitParameters(Step step);
  // Recomputes the model's buffers: resets them and runs the forward pass in training mode on the
  // training batches of `step` and later steps. A worker that is not a member yet uses the batches
  // of a member.
  absl::Status RecomputeBuffers(Step step);
  // If all live workers stop and the job keeps state, runs the steps that the worker lacks, so that
  // all workers stop before the same step with their residuals, and returns true. Returns false if
  // other workers go on.
  bool StopTogether();
  // Runs one more step whose pushes empty the residual, if the time suffices, and logs the residual
  // that remains. A late push returns its values, so another step follows it.
  void Drain();
  // Trains one step and returns the next step, which may begin while pushes lack verdicts. WHOLE: as
  // in StepRunner::Run.
  absl::StatusOr<Step> TrainStep(Step step, bool whole = false);
  // Waits for these verdicts, and corrects the next step if a push was late.
  absl::Status Settle();
  absl::Status FinishEpoch(uint64_t epoch);

  const TrainerOptions options_;
  const TrainerParts parts_;
  Step next_;                 // the next step to run
  bool joined_ = false;       // the parameters of the first step have arrived since the last Join
  bool has_buffers_ = false;  // the model's buffers are those of this process or were recomputed
  std::optional<double> lost_residual_l1_;  // set by Drain()
  Stopwatch stopwatch_;
  NumericWatch numbers_;
  Evaluator evaluator_;
  TrainingReport report_;
  StepRunner runner_;
  SavedTraining saved_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_TRAINER_H_
