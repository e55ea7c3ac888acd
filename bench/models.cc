// Measures a worker's computation without the network: the forward and backward pass of each
// built-in model in fp32, and of two models also in bf16. The batch size is 32; one thread
// computes.
#include <benchmark/benchmark.h>
#include <glog/logging.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/spec/task_spec.h"
#include "worker/models/factory.h"
#include "worker/models/model.h"

namespace thinwire {
namespace {

constexpr int64_t kBatch = 32;
constexpr int64_t kClasses = 10;

void TrainStep(benchmark::State& state, ModelKind model_kind, const std::vector<int64_t>& shape,
               Precision precision = Precision::kFp32) {
  const TaskSpec task = {.model = model_kind, .device = "cpu", .precision = precision};
  const auto model = MakeModel(task, {.shape = shape, .class_count = kClasses}).value();
  std::vector<float> x(static_cast<size_t>(kBatch * shape[0] * shape[1] * shape[2]));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17 - 0.5f;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < kBatch; ++i) labels.push_back(i % kClasses);
  for (auto _ : state) {
    const auto result = model->Train(
        {.x = x, .labels = labels}, /*loss_scale=*/1, [](uint32_t) { return absl::OkStatus(); },
        [](uint32_t, const TensorGradient& gradient) {
          benchmark::DoNotOptimize(gradient.values.data());
        });
    CHECK(result.ok()) << result.status();
  }
}

BENCHMARK_CAPTURE(TrainStep, softmax, ModelKind::kSoftmax, {1, 28, 28})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, mlp, ModelKind::kMlp, {1, 28, 28})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, cnn, ModelKind::kCnn, {1, 28, 28})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, cnn_bf16, ModelKind::kCnn, {1, 28, 28}, Precision::kBf16)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, cnn_cifar10, ModelKind::kCnn, {3, 32, 32})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, resnet20, ModelKind::kResnet20, {1, 28, 28})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, resnet20_bf16, ModelKind::kResnet20, {1, 28, 28}, Precision::kBf16)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TrainStep, resnet20_cifar10, ModelKind::kResnet20, {3, 32, 32})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::UseThreads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
