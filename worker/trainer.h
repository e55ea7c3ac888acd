// Trainer runs a worker's training loop with a client (client/client.h), a model and a dataset.
//
//   join         wait for the parameters; when joining a running job, recompute the model's buffers
//   each step    wait until the step's deal is known; save the state if the servers make a checkpoint
//                of the step; gather a batch, BeginStep, Train (the gate waits for parameters, the
//                sink pushes gradients), EndStep, NextStep
//                With local steps (client/encode/local_steps.h): wait for all parameters, Train and
//                change the parameters once per local step, then BeginStep, push the difference
//   each epoch   the evaluator tests its replica, or the servers' averages of the parameters
//   stop         after `stop` returned true, if all live workers stop and their state survives: run
//                the steps that another one has run already, so that all stop before the same step
//   drain        after `stop` returned true otherwise, or if an operator has removed the worker: run
//                one more step whose pushes empty the residual
//   leave        after the last step, earlier if `stop` returns true, if the loss is not finite or
//                if an operator has removed the worker, or after an error
//   write        the evaluator writes the model file, if there is one; if the file system fails,
//                again and again until `stop` returns true
//
// In a trial of push: adaptive (docs/adaptive_precision.md), the evaluator also tests its replica
// before the first step, seven times in between, and after the last step, and the client sends the
// accuracies to the lead. A loss that is not finite does not end the training, because the trial
// can be discarded.
//
// If the servers continue from an earlier step, the worker joins again and goes on from that step.
// An epoch that ends again is evaluated again. The model's buffers and the state of the local
// optimizer become those of that step if they were saved before it; otherwise they stay.
//
// The sampler says to which epoch a step belongs, and thus when the run is over; the number of
// steps changes when examples are dealt anew (deal_plan.h). If the worker is behind the job,
// NextStep skips steps. If NextStep skips the last step of an epoch, the worker finishes the epoch
// after NextStep. The lead appoints the evaluator (Members::Evaluator), normally worker 0. At
// the end of each epoch the evaluator computes the test accuracy of its own replica and buffers. If
// the servers average the parameters, it reads the averages and tests them with its buffers. In the
// async and ssp modes, other workers reach the end of the epoch at other times.
//
// If there is a model file (model_output.h), the evaluator does not leave before every other worker
// has left, because the servers' parameters are final only after the last worker has left. It then
// leaves, reads these parameters, tests them and writes the file, also after a symptom of
// divergence. A worker that was stopped, that stopped at a loss that is not finite, or whose final
// parameters compute no finite test loss after a symptom, writes no final file.
//
// If the loss is scaled (loss_scale.h), a step in which some shard's gradient was not finite halves
// the scale of the next step. The worker pushes such a shard with weight 0, and the other shards of
// the step with their normal weight (docs/decisions/0055).
//
// A local step whose gradient is not finite is skipped: it changes no parameter, its examples do
// not count in the weight of the push, and it halves the loss scale of the next local step. The
// state of the local optimizer is kept from step to step.
//
// If the run diverges (divergence.h), the events say so with the symptom and the advice of the
// options. A loss that is not finite ends the worker's training after that step, if
// `stop_on_divergence` is set.
//
// The worker's state, the residuals (StateSaver::Save), the loss scale and the TrainerState, is
// saved after joining, before each step of which the servers make a checkpoint, and when `stop`
// ends the training. The examples and the random numbers of a step depend only on the job's seed,
// the worker and the step (sampler.h), so they are no state. Times in the worker's events are
// measured from the arrival of the first parameters and exclude evaluation.
#ifndef THINWIRE_WORKER_TRAINER_H_
#define THINWIRE_WORKER_TRAINER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/encode/local_steps.h"
#include "common/ids.h"
#include "common/spec/local_steps_spec.h"
#include "common/spec/task_spec.h"
#include "common/time/clock.h"
#include "common/time/log_limit.h"
#include "common/time/trace.h"
#include "proto/worker_event.pb.h"
#include "worker/batch_buffer.h"
#include "worker/datasets/dataset.h"
#include "worker/divergence.h"
#include "worker/events.h"
#include "worker/loss_scale.h"
#include "worker/model_output.h"
#include "worker/models/model.h"
#include "worker/sampler.h"
#include "worker/trainer_state.h"
#include "worker/trial_tests.h"

namespace thinwire {

// Stopwatch measures the time between Start() and Stop(). A new Stopwatch is stopped. Not
// thread-safe.
class Stopwatch {
 public:
  // `clock` must outlive the Stopwatch.
  explicit Stopwatch(Clock& clock) : clock_(clock) {}

  void Start() {
    started_ = clock_.Now();
    running_ = true;
  }
  void Stop() {
    before_ = elapsed();
    running_ = false;
  }
  // Returns the total time between calls of Start() and Stop(), up to now.
  absl::Duration elapsed() const {
    return running_ ? before_ + (clock_.Now() - started_) : before_;
  }

 private:
  Clock& clock_;
  absl::Time started_;
  absl::Duration before_;
  bool running_ = false;
};

struct TrainerOptions {
  WorkerId worker;
  uint64_t epochs = 1;
  std::string device = "cpu";  // name of the model's device, for messages
  absl::Duration delay;        // artificial delay before each step's first push
  // The sampler's batch is that of a step: batch_size * accumulate * local.count examples, unless a
  // deal changes the number of accumulated batches.
  uint32_t batch_size = 0;  // examples of one forward and backward pass; 0: those of a step
  uint32_t accumulate = 1;  // passes per gradient
  LocalStepsSpec local;
  // The servers and this worker keep state that a later run continues from.
  bool keeps_state = false;
  bool averages = false;  // the servers keep averages of the parameters, which the evaluator tests
  std::string job = "train";                // the job's name, for the loss-scale file
  std::optional<LossScaling> loss_scaling;  // unset: the loss is not scaled
  bool stop_on_divergence = true;
  std::string divergence_advice;                  // what usually helps; "" if unknown
  uint64_t trial_steps = 0;                       // with push: adaptive, the steps of a trial
  std::optional<ModelOutputOptions> output;       // unset: no model file is written
  absl::Duration write_again = absl::Seconds(5);  // after a failed attempt to write it
};

// The objects that a Trainer uses. All of them must outlive the Trainer.
struct TrainerParts {
  Client& client;  // without a device if there are local steps
  Model& model;
  const Dataset& train;
  const Dataset& test;
  Sampler& sampler;
  EventPrinter& events;
  Clock& clock;
  // Blocks until a stop was requested or LONGEST has passed, and returns whether it was requested.
  // Called before each step with 0; if it returns true, the worker leaves the job before its last
  // step. If Client::Stop was called as well, the worker also leaves during a wait.
  std::function<bool(absl::Duration longest)> stop;
  Tracer* tracer = nullptr;  // null: no trace
};

// Not thread-safe.
class Trainer {
 public:
  enum class Ending {
    kFinished,
    kStopped,     // `stop` returned true, and the worker left the job
    kDiverged,    // the run diverged, and the worker left the job
    kRetired,     // an operator has removed the worker, and it left the job
    kNotWritten,  // `stop` returned true after a failed attempt to write the model file
  };

  Trainer(const TrainerOptions& options, const TrainerParts& parts);

  // Trains until the last step or until `stop` returns true. Leaves the job, also after an error.
  // Call Run once. Errors: errors of the client and of the model.
  absl::StatusOr<Ending> Run();

 private:
  // Joins the job and trains until the last step or until `stop` returns true. Begins again after a
  // rollback of the servers.
  absl::StatusOr<Ending> Loop();
  absl::StatusOr<Ending> JoinAndTrain();
  absl::StatusOr<Step> Join();
  // Waits for the artificial delay of a step. A request to stop ends the wait.
  void Delay();
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
  // Trains one step and returns the next step.
  absl::StatusOr<Step> TrainStep(Step step);
  // Blocks until the servers have judged the pushes of STEP, and returns the next step.
  absl::StatusOr<Step> NextStep(Step step);
  // Blocks until the parameters of TENSOR for STEP have arrived.
  absl::Status WaitTensor(Step step, uint32_t tensor);
  // Runs the forward and backward passes on the examples of a local step.
  absl::StatusOr<BatchResult> TrainOn(Step step, uint32_t local_step,
                                      std::span<const uint32_t> examples, const Model::Gate& gate,
                                      const Model::Sink& sink);
  // Trains on the examples and pushes their gradients. Returns the mean loss.
  absl::StatusOr<double> PushGradients(Step step, std::span<const uint32_t> examples);
  // Trains on the examples in local steps and pushes the difference of the parameters. Returns the
  // mean loss.
  absl::StatusOr<double> PushDifference(Step step, std::span<const uint32_t> examples);
  // Pushes zero gradients with weight 0. A worker calls PushZeros() for a step in which it has no
  // examples, so that all workers take the same steps.
  absl::Status PushZeros(Step step);
  absl::Status FinishEpoch(uint64_t epoch);
  absl::Status Test();
  // Returns the test result of the parameters that the evaluator tests.
  absl::StatusOr<BatchResult> TestParameters();
  // Returns whether STEP lies in a trial that the lead will end.
  bool IsInTrial(Step step) const;
  // If the trial is tested before STEP, measures its time, and the evaluator tests its replica. At
  // the end of the trial, blocks until the test is made or the lead has decided.
  absl::Status TestTrial(Step step);
  // Writes the model that Test() has tested, if it is the best. Logs an error instead of returning
  // it, because the end of a later epoch may succeed.
  void KeepBest(uint64_t epoch);
  // Returns true if the run has a symptom of divergence and the tested parameters compute no finite
  // loss. No file is written with them.
  bool IsUseless(const BatchResult& test) const;
  // Blocks until every other worker has left, so that this worker writes the final model.
  absl::Status AwaitOthers();
  // Tests the final parameters and, unless they are useless, writes the model file. Tries again
  // until the file is written or `stop` returns true. Returns whether it is not missing. Errors:
  // those of the client and the model; InvalidArgument for a model or a path that no file can have.
  // REQUIRES: this worker has left.
  absl::StatusOr<bool> WriteOutput();
  // Returns whether this worker is the evaluator. The first call may block for up to two heartbeats.
  absl::StatusOr<bool> Evaluates();

  float loss_scale() const { return loss_scale_ ? loss_scale_->value() : 1; }
  // Updates the loss scale and `divergence_` after a step with examples and this mean loss.
  void JudgeStep(Step step, double loss);
  // Updates the loss scale after a step, or after a local step. WHAT names the gradients that are
  // not finite, "" if there are none.
  void UpdateLossScale(Step step, const std::string& what);
  // Returns the symptom of divergence_ with its cause or the advice; "" if there is none.
  std::string DivergenceText() const;
  // Restores the loss scale of the newest saved state, after a rollback only that of STEP, the step
  // from which the servers continue.
  absl::Status RestoreLossScale(Step step, bool after_rollback);
  // Restores the model's buffers and the state of the local optimizer if they were saved before
  // STEP, the first step of this process, or before the preceding one: a process that joins a round
  // in progress begins after it.
  absl::Status RestoreTrainerState(Step step);
  // Returns the file of the TrainerState of STEP.
  TrainerStateFile StateFileOf(Step step) const;
  // Returns the present state. Its buffers are empty if a model file cannot have them.
  TrainerState CurrentState() const;
  // Returns a function that saves copies of the present loss scale and TrainerState beside a
  // residual file of STEP.
  client::StateSaver::WriteBeside StateWriter(Step step) const;
  // Saves the state. Logs an error instead of returning it.
  void SaveOrLog();
  // Starts to save the state if the servers make a checkpoint of the next step.
  void SaveIfDue();

  void ReportStep(Step step);
  void ReportDone(Ending ending);
  // Returns the client's counters and the trainer's own counters.
  WorkerCounters Counters() const;

  const TrainerOptions options_;
  const TrainerParts parts_;
  Step next_;                 // the next step to run
  bool joined_ = false;       // the parameters of the first step have arrived since the last Join
  bool has_buffers_ = false;  // the model's buffers are those of this process or were recomputed
  Stopwatch stopwatch_;
  BatchBuffer batches_;
  std::vector<float> zeros_;  // gradient for steps with weight 0; as long as the largest tensor
  std::optional<client::LocalSteps> local_steps_;
  std::vector<std::vector<float>> local_gradient_;  // by tensor; empty without local steps
  uint64_t skipped_local_steps_ = 0;                // because their gradients were not finite
  std::optional<LossScale> loss_scale_;
  std::optional<double> lost_residual_l1_;  // set by Drain()
  // The counter nonfinite_gradients of Counters() after the last step with examples.
  uint64_t nonfinite_gradients_ = 0;
  DivergenceWatch divergence_;
  bool batch_was_finite_ = true;  // false: the first batch with a lost loss had a bad example

  std::optional<TrialTests> trial_tests_;  // set with push: adaptive

  uint64_t steps_ = 0;
  uint64_t examples_ = 0;
  std::vector<float> step_seconds_;
  LogLimit overflow_lines_{20, absl::Seconds(10)};  // about the loss scale
  LogLimit failure_lines_{10, absl::Minutes(1)};    // about states that were not saved
  BatchResult since_report_;
  std::optional<absl::Time> last_report_;
  BatchResult epoch_train_;          // training result of the current epoch
  BatchResult last_train_;           // training result of the last finished epoch
  std::optional<BatchResult> test_;  // result of the last evaluation

  std::optional<ModelOutput> output_;
  bool writes_output_ = false;  // this worker writes the final model
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_H_
