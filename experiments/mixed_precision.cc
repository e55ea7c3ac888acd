// Prints what lower precision saves and costs: processor time, memory and accuracy of one worker
// without a network, with and without fp32 masters and loss scaling (docs/training.md,
// "Precision"). Every run is a process of its own, so that its memory can be measured.
//
//   mixed_precision MODEL EXAMPLES BATCH EPOCHS SEEDS
#include <glog/logging.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "common/base/ids.h"
#include "common/spec/optimizer_spec.h"
#include "common/spec/schedule_spec.h"
#include "common/spec/task_spec.h"
#include "kernels/convert.h"
#include "kernels/number_format.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "worker/batches/batch_buffer.h"
#include "worker/batches/sampler.h"
#include "worker/datasets/load.h"
#include "worker/models/factory.h"
#include "worker/models/model.h"

namespace thinwire {
namespace {

struct Variant {
  const char* name;
  Precision precision;
  bool fp32_masters;
  float loss_scale;
};

constexpr Variant kVariants[] = {
    {"fp32", Precision::kFp32, true, 1},
    {"bf16, fp32 masters", Precision::kBf16, true, 1},
    {"bf16, fp32 masters, loss scale 65536", Precision::kBf16, true, 65536},
    {"bf16, bf16 masters", Precision::kBf16, false, 1},
    {"fp32, bf16 masters", Precision::kFp32, false, 1},
};

struct Outcome {
  double pass_ms = 0;    // median processor time of a forward and backward pass
  double megabytes = 0;  // growth of the process's largest resident size during training
  double accuracy = 0;   // on the test set; NaN if the run failed
};

// One tensor with its optimizer's state.
struct Tensor {
  std::vector<float> masters;
  std::vector<float> slot;
  std::vector<float> gradient;
};

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns a size of this process in MB: the field NAME of /proc/self/status.
double ProcessMegabytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes * 1024 / 1e6;
  }
  LOG(FATAL) << "/proc/self/status has no " << name;
}

// Makes the largest resident size of this process, VmHWM, equal to the present one.
void ResetLargestSize() { std::ofstream("/proc/self/clear_refs") << "5"; }

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Rounds the values to bf16, as if they were stored in this format.
void RoundToBf16(std::span<float> values) {
  std::vector<std::byte> codes(2 * values.size());
  kernels::Encode<kernels::Bf16>(values, 1, codes.data());
  kernels::Decode<kernels::Bf16>(codes.data(), 1, values);
}

Outcome Train(const Datasets& data, TaskSpec task, const Variant& variant) {
  UseThreads(1);
  task.precision = variant.precision;
  const auto model = MakeModel(task, FormOf(data.train)).value();
  const auto optimizer = MakeOptimizer({.kind = OptimizerKind::kMomentum, .momentum = 0.9}).value();
  const Schedule schedule =
      Schedule::Make({.kind = ScheduleKind::kCosine, .learning_rate = 0.05}).value();
  std::vector<Tensor> tensors(model->tensors().size());
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const auto initial = model->initial(i);
    tensors[i].masters.assign(initial.begin(), initial.end());
    tensors[i].slot.resize(initial.size());
    tensors[i].gradient.resize(initial.size());
    if (!variant.fp32_masters) RoundToBf16(tensors[i].masters);
    model->Bind(i, tensors[i].masters, Model::Place::kHost);
  }

  Sampler sampler({.example_count = data.train.example_count(),
                   .worker = WorkerId{0},
                   .batch_size = task.batch_size,
                   .seed = task.seed});
  BatchBuffer batches(data.train);
  const uint64_t planned = data.train.example_count() * task.epochs;
  ResetLargestSize();
  const double idle_megabytes = ProcessMegabytes("VmRSS:");
  std::vector<double> passes;
  uint64_t examples = 0;
  for (Step step; step < sampler.EpochBegin(task.epochs); ++step) {
    const Batch batch = batches.Gather(sampler.Batch(step));
    const double begin = ProcessorSeconds();
    const auto result = model->Train(
        batch, variant.loss_scale, [](uint32_t) { return absl::OkStatus(); },
        [&](uint32_t i, const TensorGradient& gradient) {
          std::ranges::copy(gradient.values, tensors[i].gradient.begin());
        });
    passes.push_back(1000 * (ProcessorSeconds() - begin));
    CHECK(result.ok()) << result.status();
    const Update update = {
        .learning_rate = static_cast<float>(schedule.Rate(examples, planned)),
        .gradient_scale = 1 / variant.loss_scale,
        .number = step.value + 1,
        .progress = static_cast<double>(examples) / static_cast<double>(planned)};
    for (Tensor& tensor : tensors) {
      const std::array slots = {std::span(tensor.slot)};
      optimizer->Apply(update, tensor.gradient, tensor.masters, slots);
      if (!variant.fp32_masters) RoundToBf16(tensor.masters);
    }
    examples += result->examples;
  }
  const double megabytes = ProcessMegabytes("VmHWM:") - idle_megabytes;
  const auto test = Evaluate(*model, data.test);
  CHECK(test.ok()) << test.status();
  return {.pass_ms = Median(passes), .megabytes = megabytes, .accuracy = 100 * *test->accuracy()};
}

// Trains in a child process.
Outcome TrainInProcess(const Datasets& data, const TaskSpec& task, const Variant& variant) {
  int ends[2];
  PCHECK(pipe(ends) == 0);
  const pid_t child = fork();
  PCHECK(child >= 0);
  if (child == 0) {
    const Outcome outcome = Train(data, task, variant);
    PCHECK(write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome));
    _exit(0);
  }
  close(ends[1]);
  Outcome outcome;
  CHECK_EQ(read(ends[0], &outcome, sizeof(outcome)), static_cast<ssize_t>(sizeof(outcome)))
      << variant.name << ": the run failed";
  close(ends[0]);
  PCHECK(waitpid(child, nullptr, 0) == child);
  return outcome;
}

struct Estimate {
  double mean = 0;
  double deviation = 0;
};

Estimate Estimated(std::span<const Outcome> outcomes, double Outcome::*value) {
  Estimate estimate;
  const double count = static_cast<double>(outcomes.size());
  for (const Outcome& outcome : outcomes) estimate.mean += outcome.*value / count;
  for (const Outcome& outcome : outcomes) {
    estimate.deviation += std::pow(outcome.*value - estimate.mean, 2) / std::max(1.0, count - 1);
  }
  estimate.deviation = std::sqrt(estimate.deviation);
  return estimate;
}

int Main(int argc, char** argv) {
  TaskSpec task = {.device = "cpu"};
  uint32_t seeds = 0;
  const auto model = std::ranges::find(kModelNames, argc == 6 ? argv[1] : "");
  if (model == std::end(kModelNames) || !absl::SimpleAtoi(argv[2], &task.train_examples) ||
      !absl::SimpleAtoi(argv[3], &task.batch_size) || !absl::SimpleAtoi(argv[4], &task.epochs) ||
      !absl::SimpleAtoi(argv[5], &seeds) || seeds == 0 || !task.Validate().empty()) {
    std::fprintf(stderr,
                 "usage: mixed_precision softmax|mlp|cnn|resnet20 EXAMPLES BATCH EPOCHS SEEDS\n");
    return 64;
  }
  task.model = static_cast<ModelKind>(model - std::begin(kModelNames));
  const auto data = LoadDatasets(task);
  if (!data.ok()) {
    std::fprintf(stderr, "%s\n", std::string(data.status().message()).c_str());
    return 66;
  }
  std::printf("| computing, masters | ms per pass | MB | test accuracy |\n|---|---|---|---|\n");
  for (const Variant& variant : kVariants) {
    std::vector<Outcome> outcomes;
    for (task.seed = 1; task.seed <= seeds; ++task.seed) {
      outcomes.push_back(TrainInProcess(*data, task, variant));
    }
    const Estimate pass = Estimated(outcomes, &Outcome::pass_ms);
    const Estimate memory = Estimated(outcomes, &Outcome::megabytes);
    const Estimate accuracy = Estimated(outcomes, &Outcome::accuracy);
    std::printf("| %s | %.1f ± %.1f | %.0f ± %.0f | %.2f ± %.2f %% |\n", variant.name, pass.mean,
                pass.deviation, memory.mean, memory.deviation, accuracy.mean, accuracy.deviation);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }
