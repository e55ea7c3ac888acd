// Trainer runs a worker's training loop over a client (client/client.h), a model and a data set.
//
//   join         waits for the parameters; when joining a running job, recomputes the model's
//                buffers
//   each step    gathers a batch, BeginStep, Train (gates wait for parameters, the sink pushes
//                gradients), EndStep, NextStep
//   each epoch   saves residuals and loss scale; the evaluator tests its replica
//   leave        after the last step, or early if `stop` returns true
//
// A step belongs to epoch step / steps_per_epoch. When the job is ahead, NextStep skips steps; if
// it skips the last step of an epoch, the worker finishes that epoch then. The evaluator is the
// live worker with the lowest number, normally worker 0. It evaluates its own replica and buffers
// when it reaches the end of an epoch itself, which in the async and ssp modes is not a common
// moment.
//
// If the loss is scaled (loss_scale.h), a step in which some shard's gradient was not finite halves
// the scale of the next step. Such a shard is pushed with weight 0; the other shards of the step
// count (docs/decisions/0055).
//
// Residuals (Client::SaveResiduals) and the loss scale are saved after joining, after every epoch
// and when the worker is stopped. Reported times begin with the first parameters and exclude
// evaluation.
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

// Stopwatch measures time while it runs. It is stopped at first. Not thread-safe.
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
  // Returns the total time during which the stopwatch ran, up to now.
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
  std::string device = "cpu";  // where the model computes, for a person
  absl::Duration delay;        // before each step's first gradient; simulates a slow machine
  std::optional<LossScaling> loss_scaling;       // unset: the loss is not scaled
  std::optional<LossScaleFile> loss_scale_file;  // unset: the loss scale ends with the process
};

// All objects must outlive the trainer.
struct TrainerParts {
  Client& client;
  Model& model;
  const Dataset& train;
  const Dataset& test;
  Sampler& sampler;
  EventLog& events;
  Clock& clock;
  // Called before each step; true makes the worker leave early.
  std::function<bool()> stop;
};

// Not thread-safe.
class Trainer {
 public:
  enum class Ending {
    kFinished,
    kStopped,  // `stop` returned true; the worker left in order
  };

  Trainer(const TrainerOptions& options, const TrainerParts& parts);

  // Trains until the last step or until `stop` returns true. Call it once. Errors: the client's and
  // the model's.
  absl::StatusOr<Ending> Run();

 private:
  // Run() without leaving the job and reporting `done`.
  absl::StatusOr<Ending> Loop();
  absl::StatusOr<Step> Join();
  // Runs the training batches from `step` on through the model in training mode, without gradients.
  absl::Status RecomputeBuffers(Step step);
  // Trains STEP. Returns the step to train next.
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
  // As Save(), but logs an error.
  void SaveOrLog();

  void ReportStep(Step step);
  void ReportDone();
  // The client's counters and the trainer's own.
  WorkerCounters Counters() const;

  const TrainerOptions options_;
  const TrainerParts parts_;
  const Step end_;  // one past the last step
  Stopwatch stopwatch_;
  BatchBuffer batches_;
  std::vector<float> zeros_;  // as long as the largest tensor
  std::optional<LossScale> loss_scale_;
  uint64_t nonfinite_gradients_ = 0;  // the client's counter at the last UpdateLossScale()

  uint64_t steps_ = 0;
  uint64_t examples_ = 0;
  std::vector<float> step_seconds_;
  BatchResult since_report_;
  std::optional<absl::Time> last_report_;
  BatchResult epoch_train_;          // of the current epoch
  BatchResult last_train_;           // of the last finished epoch
  std::optional<BatchResult> test_;  // the test result of the current replica
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_H_
