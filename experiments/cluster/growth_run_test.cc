// Tests of the growth of the batch in virtual time: the lead doubles the batch in the middle of an
// epoch, and every example of every epoch is trained on once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "experiments/cluster/run.h"
#include "worker/batches/sampler.h"

namespace thinwire::lab {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr uint64_t kDataExamples = 2000;
constexpr uint64_t kEpochs = 6;
constexpr uint32_t kBatch = 2;

// The examples that all threads of a run have trained on. MU protects them.
struct Trained {
  absl::Mutex mu;
  std::map<uint32_t, int> counts;       // by example
  std::map<uint64_t, size_t> examples;  // of worker 0, by step
};

// The gradient of an example is x plus noise of its own. The examples of a step follow from the
// deals.
class DealtTask final : public LearningTask {
 public:
  explicit DealtTask(std::shared_ptr<Trained> trained)
      : trained_(std::move(trained)),
        sampler_({.example_count = kDataExamples, .workers = kWorkers, .batch_size = kBatch}) {}
  static MakeLearningTask Maker(const std::shared_ptr<Trained>& trained) {
    return [trained]() -> absl::StatusOr<std::unique_ptr<LearningTask>> {
      return std::make_unique<DealtTask>(trained);
    };
  }

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t) const override { return initial_; }
  uint64_t steps() const override { return sampler_.EpochBegin(kEpochs).value; }
  uint64_t examples() const override { return kEpochs * kDataExamples; }
  std::optional<SamplerOptions> sampling() const override {
    return SamplerOptions{.example_count = kDataExamples,
                          .workers = kWorkers,
                          .batch_size = kBatch,
                          .epochs = kEpochs};
  }
  void Follow(std::span<const Deal> deals) override {
    for (const Deal& deal : deals.subspan(sampler_.deal_count())) sampler_.Add(deal);
  }
  uint64_t pass_count(WorkerId worker, Step step) override {
    const size_t size = sampler_.BatchOf(worker, step).size();
    return std::max<uint64_t>(1, (size + kBatch - 1) / kBatch);
  }
  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t, Tensors parameters,
                                          Tensors gradient) override {
    const auto batch = sampler_.BatchOf(worker, step);
    absl::MutexLock lock(&trained_->mu);
    if (worker == WorkerId{0}) trained_->examples[step.value] = batch.size();
    std::ranges::fill(gradient[0], 0.0f);
    for (const uint32_t example : batch) {
      ++trained_->counts[example];
      for (size_t i = 0; i < gradient[0].size(); ++i) {
        const float noise = ((example >> i) & 1) != 0 ? 8.0f : -8.0f;
        gradient[0][i] += (parameters[0][i] + noise) / static_cast<float>(batch.size());
      }
    }
    return GradientResult{.loss_sum = 0, .examples = static_cast<uint32_t>(batch.size())};
  }
  absl::StatusOr<TestScore> Test(Tensors) override { return TestScore(); }

 private:
  const std::shared_ptr<Trained> trained_;
  Sampler sampler_;
  const std::vector<TensorShape> tensors_ = {{"x", {8}}};
  const std::vector<float> initial_ = std::vector<float>(8, 1.0f);
};

RunSpec SpecOf(const Rule& rule) {
  RunSpec spec;
  spec.job.rule = rule;
  spec.job.task.batch_size = kBatch;
  spec.job.task.epochs = kEpochs;
  spec.config.mutable_task()->set_batch_size(kBatch);
  spec.config.mutable_task()->set_epochs(kEpochs);
  spec.job.schedule = {.kind = ScheduleKind::kNoiseScale, .learning_rate = 0.01};
  spec.machines.mutable_compute()->set_mean_seconds(0.1);
  spec.tests = 4;
  return spec;
}

absl::StatusOr<RunResult> RunJob(const RunSpec& spec, const std::shared_ptr<Trained>& trained,
                                 uint32_t threads = 2) {
  return RunParameterServer(spec, DealtTask::Maker(trained),
                            {.threads = threads, .progress = nullptr});
}

TEST(GrowthRunTest, EveryExampleIsTrainedOnOnceWhileTheBatchGrows) {
  const auto trained = std::make_shared<Trained>();
  const absl::StatusOr<RunResult> result = RunJob(SpecOf(Rule::Sync(kWorkers)), trained);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples(), kEpochs * kDataExamples);
  EXPECT_EQ(trained->counts.size(), kDataExamples);
  for (const auto& [example, count] : trained->counts) {
    EXPECT_EQ(count, static_cast<int>(kEpochs)) << "example " << example;
  }
  // A tenth of the training set are 200 examples: 16 batches of 4 workers are 128.
  size_t largest = 0;
  for (const auto& [step, examples] : trained->examples) largest = std::max(largest, examples);
  EXPECT_EQ(largest, 16 * kBatch);
  EXPECT_EQ(trained->examples.begin()->second, kBatch);
  // Without growth, the run has 1,500 updates.
  EXPECT_LT(result->updates(), 750);
  EXPECT_EQ(result->updates(), trained->examples.size());
  // Every batch of worker 0 takes 0.1 s.
  EXPECT_NEAR(result->seconds(), 0.1 * kDataExamples * kEpochs / kWorkers / kBatch, 2);
}

TEST(GrowthRunTest, ALargerRatioMakesMoreUpdates) {
  RunSpec spec = SpecOf(Rule::Sync(kWorkers));
  const auto early = RunJob(spec, std::make_shared<Trained>());
  spec.job.schedule.growth.ratio = 8;
  const auto late = RunJob(spec, std::make_shared<Trained>());
  ASSERT_TRUE(early.ok() && late.ok()) << early.status() << late.status();
  EXPECT_GT(late->updates(), early->updates());
}

TEST(GrowthRunTest, TheNumberOfThreadsChangesNothing) {
  RunSpec spec = SpecOf(Rule::Backup(kWorkers, 1));
  spec.machines.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
  const auto one = RunJob(spec, std::make_shared<Trained>(), 1);
  const auto four = RunJob(spec, std::make_shared<Trained>(), 4);
  ASSERT_TRUE(one.ok() && four.ok()) << one.status() << four.status();
  EXPECT_EQ(one->ShortDebugString(), four->ShortDebugString());
  EXPECT_LT(one->updates(), 1000);
}

TEST(GrowthRunTest, ASyntheticTaskHasNoDeals) {
  RunSpec spec = SpecOf(Rule::Sync(kWorkers));
  spec.machines.mutable_synthetic();
  EXPECT_EQ(RunJob(spec, std::make_shared<Trained>()).status().message(),
            "machines.synthetic: out of range (expected a schedule other than noise_scale, got "
            "noise_scale)");
}

}  // namespace
}  // namespace thinwire::lab
