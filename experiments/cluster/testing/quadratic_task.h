// QuadraticTask is a LearningTask for tests: f(x) = |x - m|^2 / 2 with noise in the gradients. A
// matrix, a convolution and two vectors, so that a job of several shards has all kinds.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_TESTING_QUADRATIC_TASK_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_TESTING_QUADRATIC_TASK_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/cluster/learning_task.h"
#include "kernels/mix_bits.h"

namespace thinwire::lab {

struct QuadraticPlan {
  uint32_t workers = 1;
  uint64_t steps = 1;
  uint32_t local_steps = 1;
  // The last worker has no examples in its last local step.
  bool uneven = false;
  // Every gradient is an error from this step on.
  uint64_t fails_at = UINT64_MAX;
};

// Not thread-safe.
class QuadraticTask final : public LearningTask {
 public:
  static constexpr uint32_t kExamples = 8;  // of a local step of a worker

  explicit QuadraticTask(const QuadraticPlan& plan) : plan_(plan) {
    for (const TensorShape& tensor : tensors_) {
      std::vector<float>& values = initial_.emplace_back(tensor.value_count());
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>(i % 13);
    }
  }
  static MakeLearningTask Maker(const QuadraticPlan& plan) {
    return [plan]() -> absl::StatusOr<std::unique_ptr<LearningTask>> {
      return std::make_unique<QuadraticTask>(plan);
    };
  }

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t tensor) const override { return initial_[tensor]; }
  uint64_t steps() const override { return plan_.steps; }
  uint64_t examples() const override {
    return kExamples * (plan_.workers * plan_.steps * plan_.local_steps - (plan_.uneven ? 1 : 0));
  }

  uint64_t pass_count(WorkerId worker, Step step) override {
    const uint64_t missing = IsLast(worker, step, plan_.local_steps - 1) ? 1 : 0;
    return std::max<uint64_t>(1, plan_.local_steps - missing);
  }
  StepShape ShapeOf(WorkerId worker, Step step) override {
    const uint32_t missing = IsLast(worker, step, plan_.local_steps - 1) ? 1 : 0;
    const uint32_t local_steps = plan_.local_steps - missing;
    return {.examples = kExamples * local_steps,
            .local_steps = local_steps,
            .ends_epoch = step.value + 1 == plan_.steps};
  }
  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t local_step,
                                          Tensors parameters, Tensors gradient) override {
    if (step.value >= plan_.fails_at) return absl::InternalError("the gradient failed");
    if (IsLast(worker, step, local_step)) return GradientResult();
    const uint64_t number = step.value * plan_.local_steps + local_step;
    uint64_t random = kernels::MixBits((uint64_t{worker.value} << 32) + number);
    GradientResult result = {.examples = kExamples};
    for (size_t t = 0; t < gradient.size(); ++t) {
      for (size_t i = 0; i < gradient[t].size(); ++i) {
        random = random * 6364136223846793005 + 1442695040888963407;
        const float noise = static_cast<float>(random >> 40) * 0x1p-23f - 1;
        gradient[t][i] = parameters[t][i] - Minimum(i) + noise;
      }
    }
    result.loss_sum = kExamples * Loss(parameters);
    return result;
  }
  absl::StatusOr<TestScore> Test(Tensors parameters) override {
    const double loss = Loss(parameters);
    return TestScore{.loss = loss, .accuracy = 1 / (1 + loss)};
  }

 private:
  // Returns whether this is the local step without examples.
  bool IsLast(WorkerId worker, Step step, uint32_t local_step) const {
    return plan_.uneven && worker.value + 1 == plan_.workers && step.value + 1 == plan_.steps &&
           local_step + 1 == plan_.local_steps;
  }
  static float Minimum(size_t i) { return static_cast<float>(i % 7) - 3; }
  static double Loss(Tensors parameters) {
    double sum = 0;
    size_t count = 0;
    for (const std::span<float> tensor : parameters) {
      for (size_t i = 0; i < tensor.size(); ++i) {
        sum += (tensor[i] - Minimum(i)) * (tensor[i] - Minimum(i)) / 2;
      }
      count += tensor.size();
    }
    return sum / static_cast<double>(count);
  }

  const QuadraticPlan plan_;
  const std::vector<TensorShape> tensors_ = {
      {"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 12, 5}}, {"b2", {60}}};
  std::vector<std::vector<float>> initial_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_TESTING_QUADRATIC_TASK_H_
