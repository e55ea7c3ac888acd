#include "experiments/plan/synthetic_task.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/mix_bits.h"

namespace thinwire::lab {
namespace {

using kernels::MixBits;

// Returns random number I of STREAM: mean 0, standard deviation 1.
float RandomValue(uint64_t stream, uint64_t i) {
  const uint64_t bits = MixBits(stream + i);
  const uint64_t sum =
      (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
  // Each part has the mean 65535 / 2 and the variance (65536^2 - 1) / 12.
  constexpr float kDeviation = 37837.2f;  // sqrt(4 * (65536^2 - 1) / 12)
  return (static_cast<float>(sum) - 131070.0f) / kDeviation;
}

class QuadraticTask final : public LearningTask {
 public:
  QuadraticTask(const SyntheticTask& spec, uint32_t workers, const TaskSpec& task)
      : spec_(spec), workers_(workers), task_(task), seed_(MixBits(task.seed)) {
    const uint64_t size = spec.values() / spec.tensors();
    for (uint32_t i = 0; i < spec.tensors(); ++i) {
      // Two dimensions: sparse codecs apply to matrices only.
      tensors_.push_back({absl::StrCat("x", i), {1, static_cast<int64_t>(size)}});
    }
    initial_.resize(size);
    for (uint64_t i = 0; i < spec.values(); ++i) minimum_.push_back(RandomValue(seed_, i));
  }

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t) const override { return initial_; }
  uint64_t steps() const override { return spec_.steps(); }
  uint64_t examples() const override { return spec_.steps() * workers_ * task_.step_examples(); }
  uint64_t pass_count(WorkerId, Step) override { return task_.step_passes(); }
  StepShape ShapeOf(WorkerId, Step step) override {
    return {.examples = static_cast<uint32_t>(task_.step_examples()),
            .local_steps = task_.local.count,
            .ends_epoch = step.value + 1 == steps()};
  }

  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t local_step,
                                          Tensors parameters, Tensors gradient) override {
    const uint64_t number = step.value * task_.local.count + local_step;
    const uint64_t stream = MixBits(MixBits(seed_ + 1 + worker.value) + number);
    const auto noise = static_cast<float>(spec_.noise());
    double loss = 0;
    uint64_t i = 0;
    for (size_t tensor = 0; tensor < parameters.size(); ++tensor) {
      for (size_t k = 0; k < parameters[tensor].size(); ++k, ++i) {
        const float distance = parameters[tensor][k] - minimum_[i];
        loss += static_cast<double>(distance) * distance / 2;
        gradient[tensor][k] = distance + noise * RandomValue(stream, i);
      }
    }
    const auto examples = static_cast<uint32_t>(task_.gradient_examples());
    return GradientResult{.loss_sum = loss * examples, .examples = examples};
  }

  absl::StatusOr<TestScore> Test(Tensors parameters) override {
    double loss = 0;
    uint64_t i = 0;
    for (const std::span<float> tensor : parameters) {
      for (const float x : tensor) {
        const double distance = x - minimum_[i++];
        loss += distance * distance / 2;
      }
    }
    return TestScore{.loss = loss, .accuracy = 1 / (1 + loss)};
  }

 private:
  const SyntheticTask spec_;
  const uint32_t workers_;
  const TaskSpec task_;
  const uint64_t seed_;
  std::vector<TensorShape> tensors_;
  std::vector<float> initial_;  // of every tensor
  std::vector<float> minimum_;  // of all tensors, one after the other
};

}  // namespace

std::unique_ptr<LearningTask> MakeSyntheticTask(const SyntheticTask& spec, uint32_t workers,
                                                const TaskSpec& task) {
  return std::make_unique<QuadraticTask>(spec, workers, task);
}

}  // namespace thinwire::lab
