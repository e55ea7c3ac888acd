#include "experiments/plan/tasks.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "common/files/read_file.h"
#include "experiments/plan/synthetic_task.h"
#include "worker/batches/batch_buffer.h"
#include "worker/batches/sampler.h"
#include "worker/models/factory.h"
#include "worker/models/model.h"

namespace thinwire::lab {
namespace {

// The number of batches from which Test() computes the running moments of batch normalization, as a
// worker that joins a running job does (worker/trainer/trainer.cc).
constexpr uint64_t kBufferBatches = 50;

// Parts that the tasks of all threads share.
struct Shared {
  std::shared_ptr<const Datasets> datasets;
  absl::Mutex one_at_a_time;  // TorchScript models only
};

class ModelTask final : public LearningTask {
 public:
  static absl::StatusOr<std::unique_ptr<LearningTask>> Make(const TaskSpec& task, uint32_t workers,
                                                            std::shared_ptr<Shared> shared) {
    const Dataset& train = shared->datasets->train;
    ASSIGN_OR_RETURN(std::unique_ptr<Model> model, MakeModel(task, FormOf(train)));
    return std::unique_ptr<LearningTask>(
        new ModelTask(task, workers, std::move(shared), std::move(model)));
  }

  const std::vector<TensorShape>& tensors() const override { return model_->tensors(); }
  std::span<const float> initial(uint32_t tensor) const override { return model_->initial(tensor); }
  uint64_t steps() const override { return sampler_.EpochBegin(task_.epochs).value; }
  uint64_t examples() const override {
    return shared_->datasets->train.example_count() * task_.epochs;
  }

  std::optional<SamplerOptions> sampling() const override {
    SamplerOptions options = options_;
    options.epochs = task_.epochs;
    return options;
  }
  void Follow(std::span<const Deal> deals) override {
    for (const Deal& deal : deals.subspan(sampler_.deal_count())) sampler_.Add(deal);
  }

  uint64_t pass_count(WorkerId worker, Step step) override {
    return std::max<uint64_t>(1, Parts(sampler_.BatchOf(worker, step), task_.batch_size).size());
  }

  StepShape ShapeOf(WorkerId worker, Step step) override {
    const std::span<const uint32_t> batch = sampler_.BatchOf(worker, step);
    return {.examples = static_cast<uint32_t>(batch.size()),
            .local_steps = static_cast<uint32_t>(Parts(batch, task_.gradient_examples()).size()),
            .ends_epoch = sampler_.epoch(step + 1) > sampler_.epoch(step)};
  }

  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t local_step,
                                          Tensors parameters, Tensors gradient) override {
    // Without local steps, the whole batch of the step makes one gradient. A deal may have changed
    // its size.
    const auto parts = Parts(sampler_.BatchOf(worker, step),
                             task_.local.enabled() ? task_.gradient_examples() : 0);
    if (local_step >= parts.size() || parts[local_step].empty()) return GradientResult{};
    Batch batch = batches_.Gather(parts[local_step]);
    batch.random_seed = sampler_.RandomSeedOf(worker, step, local_step);
    batch.part_size = task_.batch_size;
    const Model::Gate gate = [](uint32_t) { return absl::OkStatus(); };
    const Model::Sink sink = [&](uint32_t i, const TensorGradient& values) {
      std::ranges::copy(values.values, gradient[i].begin());
    };
    absl::StatusOr<BatchResult> result;
    {
      const absl::MutexLockMaybe lock(
          task_.model == ModelKind::kTorchScript ? &shared_->one_at_a_time : nullptr);
      Bind(parameters);
      result = model_->Train(batch, /*loss_scale=*/1, gate, sink);
    }
    RETURN_IF_ERROR(result.status());
    return GradientResult{.loss_sum = result->loss_sum,
                          .examples = static_cast<uint32_t>(result->examples)};
  }

  absl::StatusOr<TestScore> Test(Tensors parameters) override {
    const absl::MutexLockMaybe lock(task_.model == ModelKind::kTorchScript ? &shared_->one_at_a_time
                                                                           : nullptr);
    Bind(parameters);
    if (model_->has_buffers()) RETURN_IF_ERROR(ComputeBuffers());
    ASSIGN_OR_RETURN(const BatchResult result, Evaluate(*model_, shared_->datasets->test));
    return TestScore{.loss = result.mean_loss(), .accuracy = result.accuracy()};
  }

 private:
  ModelTask(const TaskSpec& task, uint32_t workers, std::shared_ptr<Shared> shared,
            std::unique_ptr<Model> model)
      : task_(task),
        shared_(std::move(shared)),
        model_(std::move(model)),
        options_({.example_count = shared_->datasets->train.example_count(),
                  .worker = WorkerId{0},
                  .workers = workers,
                  .batch_size = task.batch_size,
                  .batch_count = static_cast<uint32_t>(task.step_passes()),
                  .seed = task.seed}),
        sampler_(options_),
        batches_(shared_->datasets->train) {}

  // The model reads the caller's memory until the next call.
  void Bind(Tensors parameters) {
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      model_->Bind(i, parameters[i], Model::Place::kHost);
    }
  }

  absl::Status ComputeBuffers() {
    // Without the deals, which another thread may have passed to this task already or not.
    Sampler sampler(options_);
    const uint64_t step_count = sampler.EpochBegin(task_.epochs).value;
    model_->ResetBuffers();
    uint64_t batch_count = 0;
    for (Step step; step.value < std::min(kBufferBatches, step_count); ++step) {
      for (const auto part : Parts(sampler.BatchOf(WorkerId{0}, step), task_.batch_size)) {
        if (batch_count++ == kBufferBatches) return absl::OkStatus();
        Batch batch = batches_.Gather(part);
        batch.random_seed = sampler.RandomSeedOf(WorkerId{0}, step);
        RETURN_IF_ERROR(model_->UpdateBuffers(batch));
      }
    }
    return absl::OkStatus();
  }

  const TaskSpec task_;
  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<Model> model_;
  const SamplerOptions options_;
  Sampler sampler_;
  BatchBuffer batches_;
};

absl::Status CheckSupported(const TaskSpec& task) {
  Problems problems;
  if (task.precision != Precision::kFp32) {
    problems.Add(
        "precision",
        absl::StrCat("not supported in an experiment (expected fp32, got ",
                     std::string(kPrecisionNames[static_cast<size_t>(task.precision)]), ")"));
  }
  if (task.loss_scale != 0) {
    problems.Add("loss_scale", absl::StrCat("not supported in an experiment (expected 0, got ",
                                            task.loss_scale, ")"));
  }
  if (task.device != "auto" && task.device != "cpu") {
    problems.Add("device", absl::StrCat("not supported in an experiment (expected cpu, got ",
                                        task.device, ")"));
  }
  return problems.ToStatus();
}

// Returns a hash of the file PATH; 0 if PATH is empty.
absl::StatusOr<uint64_t> FileHash(const std::string& path) {
  if (path.empty()) return uint64_t{0};
  const absl::StatusOr<std::string> bytes = ReadWholeFile(path);
  if (!bytes.ok()) {
    return absl::NotFoundError(absl::StrCat("model_file: ", bytes.status().message()));
  }
  return Crc32c(std::as_bytes(std::span(*bytes)));
}

}  // namespace

absl::Status TaskSource::Load(const TaskSpec& task) {
  const std::string key = absl::StrCat(static_cast<int>(task.dataset), " ", task.train_examples,
                                       " ", task.test_examples, " ", task.data_dir);
  if (datasets_ != nullptr && key == loaded_) return absl::OkStatus();
  datasets_ = nullptr;
  ASSIGN_OR_RETURN(Datasets datasets, LoadDatasets(task));
  datasets_ = std::make_shared<const Datasets>(std::move(datasets));
  hash_ = ContentHash(*datasets_);
  loaded_ = key;
  return absl::OkStatus();
}

absl::StatusOr<MakeLearningTask> TaskSource::TasksOf(const RunSpec& spec) {
  const uint32_t workers = spec.job.rule.workers;
  if (spec.machines.has_synthetic()) {
    return MakeLearningTask(
        [synthetic = spec.machines.synthetic(), workers,
         task = spec.job.task]() -> absl::StatusOr<std::unique_ptr<LearningTask>> {
          return MakeSyntheticTask(synthetic, workers, task);
        });
  }
  TaskSpec task = spec.job.task;
  RETURN_IF_ERROR(CheckSupported(task));
  task.device = "cpu";
  RETURN_IF_ERROR(Load(task));
  auto shared = std::make_shared<Shared>();
  shared->datasets = datasets_;
  return MakeLearningTask(
      [task, workers, shared] { return ModelTask::Make(task, workers, shared); });
}

absl::StatusOr<uint64_t> TaskSource::ContentHashOf(const RunSpec& spec) {
  if (spec.machines.has_synthetic()) return uint64_t{0};
  RETURN_IF_ERROR(Load(spec.job.task));
  ASSIGN_OR_RETURN(const uint64_t model, FileHash(spec.job.task.model_file));
  return hash_ ^ model;
}

}  // namespace thinwire::lab
