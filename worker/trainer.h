// Trainer: a worker's loop (client/client.h) around a model and its data.
//
//   join, wait for the parameters, and if this is a later join recompute the model's buffers
//   for each step:         batch -> BeginStep -> Train (gates wait, the sink pushes) -> EndStep ->
//   NextStep when an epoch is done: the evaluator tests the replica leave
//
// A step belongs to the epoch step / steps_per_epoch; a worker that jumps over steps may jump over
// an epoch's end, and that epoch is done then. The evaluator is the live worker with the lowest
// number, normally worker 0: it tests with its own replica and buffers. In async and ssp that is at
// its own pace.
//
// Where the loss is scaled (loss_scale.h), a step that had a shard of its gradient go with weight
// 0, for it was not finite, halves the scale of the next. Its other shards count: each is judged by
// itself (docs/decisions/0055).
//
// What the worker owes (Client::SaveResiduals), and its loss scale, are saved when it has joined,
// after every epoch and when it is stopped.
//
// Reported times are of training: from the first parameters on, without evaluation.
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
#include "proto/loss_scaling.h"
#include "proto/worker_event.pb.h"
#include "worker/batch_buffer.h"
#include "worker/datasets/dataset.h"
#include "worker/events.h"
#include "worker/loss_scale.h"
#include "worker/loss_scale_file.h"
#include "worker/model.h"
#include "worker/sampler.h"
#include "worker/stopwatch.h"

namespace thinwire {

struct TrainerOptions {
  WorkerId worker;
  uint64_t epochs = 1;
  std::string device = "cpu";  // where the model computes, for a person
  absl::Duration delay;  // added to every step before its first gradient, to play a slow machine
  std::optional<LossScaling> loss_scaling;        // nothing: the loss is not scaled
  std::optional<LossScalePlace> loss_scale_file;  // where the loss scale outlives the process
};

// All outlive the trainer.
struct TrainerParts {
  Client& client;
  Model& model;
  const Dataset& train;
  const Dataset& test;
  Sampler& sampler;
  EventLog& events;
  Clock& clock;
  // Asked between steps: whether to leave early.
  std::function<bool()> stop;
};

// Not thread-safe.
class Trainer {
 public:
  enum class Ending {
    kFinished,
    kStopped,  // left early, in order
  };

  Trainer(const TrainerOptions& options, const TrainerParts& parts);

  // The whole run, once. Errors: the client's and the model's.
  absl::StatusOr<Ending> Run();

 private:
  // All of Run but the last event.
  absl::StatusOr<Ending> Loop();
  absl::StatusOr<Step> Join();
  absl::Status FinishEpoch(uint64_t epoch);
  // Training's batches from STEP on, through the model in training mode, without a gradient.
  absl::Status RecomputeBuffers(Step step);
  absl::StatusOr<Step> TrainStep(Step step);
  absl::Status Compute(std::span<const uint32_t> examples);
  absl::Status GiveNothing();
  float loss_scale() const { return loss_scale_ ? loss_scale_->value() : 1; }
  // The loss scale of the next step, by what became of STEP's gradient.
  void MoveLossScale(Step step);
  absl::Status RestoreLossScale();
  // Both what is owed and the loss scale.
  absl::Status Save();
  void SaveOrTell();
  absl::Status Test();
  bool evaluates() const;
  void TellStep(Step step);
  void TellDone();
  // The client's counters and those of the trainer.
  WorkerCounters Counters() const;

  const TrainerOptions options_;
  const TrainerParts parts_;
  const Step end_;  // the first step that is not taken
  Stopwatch stopwatch_;
  BatchBuffer batches_;
  std::vector<float> zeros_;
  std::optional<LossScale> loss_scale_;
  uint64_t nonfinite_gradients_ = 0;  // the client's count, when the loss scale was last moved

  uint64_t steps_ = 0;
  uint64_t examples_ = 0;
  std::vector<float> step_seconds_;
  BatchResult since_line_;
  std::optional<absl::Time> last_line_;
  BatchResult epoch_train_;          // of the epoch at hand
  BatchResult last_train_;           // of the last epoch that had a step
  std::optional<BatchResult> test_;  // of the replica as it stands
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_H_
