// Trainer runs a worker's training loop with a client (client/client.h), a model and a dataset.
//
//   join         wait for the parameters; when joining a running job, recompute the model's buffers
//   each step    gather a batch, BeginStep, Train (the gate waits for parameters, the sink pushes
//                gradients), EndStep, NextStep
//   each epoch   save residuals and loss scale; the evaluator tests its replica
//   leave        after the last step, or before it if `stop` returns true
//
// A step belongs to epoch step / steps_per_epoch. If the worker is behind the job, NextStep skips
// steps. If NextStep skips the last step of an epoch, the worker finishes the epoch after NextStep.
// The evaluator is the live worker with the lowest number, normally worker 0. At the end of each
// epoch it evaluates its own replica and buffers. In the async and ssp modes, other workers reach
// the end of the epoch at other times.
//
// If the loss is scaled (loss_scale.h), a step in which some shard's gradient was not finite halves
// the scale of the next step. The worker pushes such a shard with weight 0, and the other shards of
// the step with their normal weight (docs/decisions/0055).
//
// Residuals (Client::SaveResiduals) and the loss scale are saved after joining, after every epoch
// and when the worker is stopped. Reported times are measured from the arrival of the first
// parameters and exclude evaluation.
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
#include "common/clock.h"
#include "common/ids.h"
#include "common/spec/task_spec.h"
#include "proto/worker_event.pb.h"
#include "worker/batch_buffer.h"
#include "worker/datasets/dataset.h"
#include "worker/events.h"
#include "worker/loss_scale.h"
#include "worker/models/model.h"
#include "worker/sampler.h"

namespace thinwire {

// Stopwatch measures the time between Start() and Stop(). A new Stopwatch is stopped. Not
// thread-safe.
class Stopwatch {
 public:
  // `clock` must outlive the stopwatch.
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
  absl::Duration delay;        // artificial delay before each step's first gradient
  std::optional<LossScaling> loss_scaling;       // unset: the loss is not scaled
  std::optional<LossScaleFile> loss_scale_file;  // unset: the loss scale is not saved
};

// All objects referred to must outlive the trainer.
struct TrainerParts {
  Client& client;
  Model& model;
  const Dataset& train;
  const Dataset& test;
  Sampler& sampler;
  EventLog& events;
  Clock& clock;
  // Called before each step. If it returns true, the worker leaves the job early.
  std::function<bool()> stop;
};

// Not thread-safe.
class Trainer {
 public:
  enum class Ending {
    kFinished,
    kStopped,  // `stop` returned true, and the worker left the job
  };

  Trainer(const TrainerOptions& options, const TrainerParts& parts);

  // Trains until the last step or until `stop` returns true. Call Run once. Errors: errors of the
  // client and of the model.
  absl::StatusOr<Ending> Run();

 private:
  // Does the work of Run() except leaving the job and writing the event `done`.
  absl::StatusOr<Ending> Loop();
  absl::StatusOr<Step> Join();
  // Recomputes the model's buffers: resets them and runs the forward pass in training mode on the
  // training batches of `step` and later steps.
  absl::Status RecomputeBuffers(Step step);
  // Trains one step and returns the next step.
  absl::StatusOr<Step> TrainStep(Step step);
  absl::Status PushGradients(std::span<const uint32_t> examples);
  absl::Status PushZeros();
  absl::Status FinishEpoch(uint64_t epoch);
  absl::Status Test();
  bool evaluates() const;

  float loss_scale() const { return loss_scale_ ? loss_scale_->value() : 1; }
  void UpdateLossScale(Step step);
  absl::Status RestoreLossScale();
  // Saves the residuals and the loss scale.
  absl::Status Save();
  // Saves the residuals and the loss scale; logs an error instead of returning it.
  void SaveOrLog();

  void ReportStep(Step step);
  void ReportDone();
  // Returns the counters of the client and of the trainer.
  WorkerCounters Counters() const;

  const TrainerOptions options_;
  const TrainerParts parts_;
  const Step end_;  // the step after the last step
  Stopwatch stopwatch_;
  BatchBuffer batches_;
  std::vector<float> zeros_;  // gradient of a step with weight 0; as long as the largest tensor
  std::optional<LossScale> loss_scale_;
  uint64_t nonfinite_gradients_ = 0;  // counter value at the last UpdateLossScale()

  uint64_t steps_ = 0;
  uint64_t examples_ = 0;
  std::vector<float> step_seconds_;
  BatchResult since_report_;
  std::optional<absl::Time> last_report_;
  BatchResult epoch_train_;          // training result of the current epoch
  BatchResult last_train_;           // training result of the last finished epoch
  std::optional<BatchResult> test_;  // result of the last evaluation
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_H_
