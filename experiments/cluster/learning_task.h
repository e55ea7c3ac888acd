// LearningTask is what a simulated worker computes: initial parameters, gradients and tests. It is
// a pure function of the deals, the parameters, the worker, the step and the local step. One
// LearningTask serves one thread; all of them may share a dataset in memory.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LEARNING_TASK_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LEARNING_TASK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "proto/control.pb.h"
#include "worker/batches/sampler.h"

namespace thinwire::lab {

// One span per tensor.
using Tensors = std::span<const std::span<float>>;
using ConstTensors = std::span<const std::span<const float>>;

struct GradientResult {
  double loss_sum = 0;    // sum over the examples of the batch
  uint32_t examples = 0;  // 0: the worker has no examples; the gradient is not set
};

struct TestScore {
  double loss = 0;
  // 0 to 1; a synthetic task returns 1 / (1 + loss). Unset: the model computes only a loss.
  std::optional<double> accuracy;
};

// A worker's part of a step.
struct StepShape {
  uint32_t examples = 0;
  uint32_t local_steps = 0;  // with examples
  bool ends_epoch = false;   // no later step belongs to the same epoch
};

// Not thread-safe.
class LearningTask {
 public:
  virtual ~LearningTask() = default;

  virtual const std::vector<TensorShape>& tensors() const = 0;
  virtual std::span<const float> initial(uint32_t tensor) const = 0;
  // Returns the number of steps of every worker, unless later deals change it, and the number of
  // examples of all workers together.
  virtual uint64_t steps() const = 0;
  virtual uint64_t examples() const = 0;

  // Returns how the examples are dealt; nullopt: the batches do not follow from deals.
  virtual std::optional<SamplerOptions> sampling() const { return std::nullopt; }
  // Adds the deals that the task does not know yet. DEALS has all deals of the run. A task whose
  // batches do not follow from deals ignores them.
  virtual void Follow(std::span<const Deal> /*deals*/) {}

  // Returns the number of forward and backward passes of WORKER in STEP, at least 1.
  virtual uint64_t pass_count(WorkerId, Step) { return 1; }

  // Returns the part of WORKER in STEP. Only for streaming local steps.
  virtual StepShape ShapeOf(WorkerId, Step) { return {}; }
  // Sets GRADIENT to the gradient of the mean loss of WORKER's batch of LOCAL_STEP of STEP at
  // PARAMETERS. Without local steps, LOCAL_STEP is 0. The parameters are not changed. Errors: those
  // of Model::Train.
  virtual absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t local_step,
                                                  Tensors parameters, Tensors gradient) = 0;
  virtual absl::StatusOr<TestScore> Test(Tensors parameters) = 0;
};

// Makes one LearningTask for each thread. Thread-safe.
using MakeLearningTask = std::function<absl::StatusOr<std::unique_ptr<LearningTask>>()>;

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LEARNING_TASK_H_
