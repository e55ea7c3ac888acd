// StepRunner trains the steps of a worker: it gathers a batch, computes gradients and pushes them.
//
//   a step            BeginStep, Train (the gate waits for parameters, the sink pushes gradients),
//                     EndStep, NextStep
//   with local steps  (client/encode/local_steps.h) wait for all parameters, Train and change the
//                     parameters once per local step, then BeginStep, push the difference
//   streaming         (client/encode/streaming_steps.h) the same, and the differences of a fragment are
//                     pushed and mixed while the local steps go on. The model then uses parameters
//                     of its own instead of the replica
//   without examples  push zeros with weight 0, so that all workers take the same steps
#ifndef THINWIRE_WORKER_TRAINER_STEP_RUNNER_H_
#define THINWIRE_WORKER_TRAINER_STEP_RUNNER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/local_steps.h"
#include "client/encode/streaming_steps.h"
#include "common/base/ids.h"
#include "worker/batches/batch_buffer.h"
#include "worker/models/model.h"
#include "worker/trainer/numeric_watch.h"
#include "worker/trainer/trainer_parts.h"
#include "worker/trainer/training_report.h"

namespace thinwire {

// Not thread-safe.
class StepRunner {
 public:
  // All arguments must outlive this object.
  StepRunner(const TrainerOptions& options, const TrainerParts& parts, NumericWatch& numbers,
             TrainingReport& report);

  // Trains STEP and returns the next step as soon as it may begin (Client::NextStep). WHOLE: pushes
  // all fragments after the last local step, so that no local update of the worker lacks a push. The
  // last step of an epoch does so in any case.
  absl::StatusOr<Step> Run(Step step, bool whole = false);
  // Returns the local steps, whose optimizer's state is kept from step to step; null without them.
  client::LocalSteps* local_steps() { return local_steps_ ? &*local_steps_ : nullptr; }
  // Returns the parameters of streaming local steps, which are kept from step to step; null without
  // them.
  client::StreamingSteps* streaming() { return streaming_ ? &*streaming_ : nullptr; }

 private:
  // Waits for the artificial delay of a step. A request to stop ends the wait.
  void Delay();
  // Runs the forward and backward passes on the examples of a local step.
  absl::StatusOr<BatchResult> TrainOn(Step step, uint32_t local_step,
                                      std::span<const uint32_t> examples, const Model::Gate& gate,
                                      const Model::Sink& sink);
  // Trains on the examples and pushes their gradients. Returns the mean loss.
  absl::StatusOr<double> PushGradients(Step step, std::span<const uint32_t> examples);
  // Trains on the examples in local steps and pushes the difference of the parameters. Returns the
  // mean loss.
  absl::StatusOr<double> PushDifference(Step step, std::span<const uint32_t> examples);
  // The same, and pushes one fragment after the other.
  absl::StatusOr<double> PushFragments(Step step, std::span<const uint32_t> examples, bool whole);
  // Trains on PARTS, one local step each, and exchanges the fragments. Adds to TRAINED.
  absl::Status StreamLocalSteps(Step step, std::span<const std::span<const uint32_t>> parts,
                                bool whole, BatchResult& trained);
  // Trains one local step, which changes PARAMETERS. Returns whether its gradient was finite.
  absl::StatusOr<bool> TakeLocalStep(Step step, uint32_t local_step,
                                     std::span<const uint32_t> examples,
                                     client::LocalSteps::Tensors parameters, BatchResult& trained);
  // Returns the replica, one span per tensor.
  std::vector<std::span<float>> Replica() const;
  void Bind(client::LocalSteps::Tensors parameters);
  // Pushes zero gradients with weight 0.
  absl::Status PushZeros(Step step);

  const TrainerOptions& options_;
  const TrainerParts& parts_;
  NumericWatch& numbers_;
  TrainingReport& report_;
  BatchBuffer batches_;
  std::vector<float> zeros_;  // gradient for steps with weight 0; as long as the largest tensor
  std::optional<client::LocalSteps> local_steps_;
  std::optional<client::StreamingSteps> streaming_;
  std::vector<std::vector<float>> local_gradient_;  // by tensor; empty without local steps
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_TRAINER_STEP_RUNNER_H_
