// Tests of deals in virtual time: the lead doubles the batch in the middle of an epoch, or gives slow
// workers fewer local steps, and every example of every epoch is trained on once.
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
  std::map<uint32_t, int> counts;                           // by example
  std::map<uint32_t, std::map<uint64_t, size_t>> examples;  // by worker and step
};

// The gradient of an example is x plus noise of its own. The examples of a step follow from the
// deals. With local steps, each of them has a batch.
class DealtTask final : public LearningTask {
 public:
  DealtTask(std::shared_ptr<Trained> trained, const TaskSpec& task)
      : trained_(std::move(trained)),
        local_(task.local.enabled()),
        options_({.example_count = kDataExamples,
                  .workers = kWorkers,
                  .batch_size = kBatch,
                  .batch_count = static_cast<uint32_t>(task.step_passes()),
                  .epochs = kEpochs}),
        sampler_(options_) {}

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t) const override { return initial_; }
  uint64_t steps() const override { return sampler_.EpochBegin(kEpochs).value; }
  uint64_t examples() const override { return kEpochs * kDataExamples; }
  std::optional<SamplerOptions> sampling() const override { return options_; }
  void Follow(std::span<const Deal> deals) override {
    for (const Deal& deal : deals.subspan(sampler_.deal_count())) sampler_.Add(deal);
  }
  uint64_t pass_count(WorkerId worker, Step step) override {
    const size_t size = sampler_.BatchOf(worker, step).size();
    return std::max<uint64_t>(1, (size + kBatch - 1) / kBatch);
  }
  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t local_step,
                                          Tensors parameters, Tensors gradient) override {
    const std::span<const uint32_t> examples = sampler_.BatchOf(worker, step);
    std::span<const uint32_t> batch = examples;
    if (local_) {
      batch = batch.subspan(std::min(batch.size(), size_t{kBatch} * local_step));
      batch = batch.first(std::min<size_t>(batch.size(), kBatch));
    }
    absl::MutexLock lock(&trained_->mu);
    trained_->examples[worker.value][step.value] = examples.size();
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
  const bool local_;
  const SamplerOptions options_;
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
  spec.job.schedule.learning_rate = 0.01;
  spec.machines.mutable_compute()->set_mean_seconds(0.1);
  spec.tests = 4;
  return spec;
}

RunSpec GrowingSpec(const Rule& rule) {
  RunSpec spec = SpecOf(rule);
  spec.job.schedule.kind = ScheduleKind::kNoiseScale;
  return spec;
}

// Worker 0 needs four times as long for a batch as the others. A step has 8 local steps.
RunSpec LocalSpec(const Rule& rule) {
  RunSpec spec = SpecOf(rule);
  spec.job.task.local.count = 8;
  spec.config.mutable_task()->set_local_steps(8);
  spec.machines.mutable_compute()->set_slow_workers(1);
  spec.machines.mutable_compute()->set_slow_factor(4);
  return spec;
}

RunSpec BySpeed(RunSpec spec) {
  spec.job.task.local.by_speed = true;
  spec.config.mutable_task()->set_auto_local_steps(true);
  return spec;
}

absl::StatusOr<RunResult> RunJob(const RunSpec& spec, const std::shared_ptr<Trained>& trained,
                                 uint32_t threads = 2) {
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<LearningTask>> {
    return std::make_unique<DealtTask>(trained, spec.job.task);
  };
  return RunParameterServer(spec, make, {.threads = threads, .progress = nullptr});
}

void ExpectEveryExampleOfEveryEpoch(const Trained& trained) {
  EXPECT_EQ(trained.counts.size(), kDataExamples);
  for (const auto& [example, count] : trained.counts) {
    EXPECT_EQ(count, static_cast<int>(kEpochs)) << "example " << example;
  }
}

TEST(DealsRunTest, EveryExampleIsTrainedOnOnceWhileTheBatchGrows) {
  const auto trained = std::make_shared<Trained>();
  const absl::StatusOr<RunResult> result = RunJob(GrowingSpec(Rule::Sync(kWorkers)), trained);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples(), kEpochs * kDataExamples);
  ExpectEveryExampleOfEveryEpoch(*trained);
  // A tenth of the training set are 200 examples: 16 batches of 4 workers are 128.
  size_t largest = 0;
  for (const auto& [step, examples] : trained->examples[0]) largest = std::max(largest, examples);
  EXPECT_EQ(largest, 16 * kBatch);
  EXPECT_EQ(trained->examples[0].begin()->second, kBatch);
  // Without growth, the run has 1,500 updates.
  EXPECT_LT(result->updates(), 750);
  EXPECT_EQ(result->updates(), trained->examples[0].size());
  // Every batch of worker 0 takes 0.1 s.
  EXPECT_NEAR(result->seconds(), 0.1 * kDataExamples * kEpochs / kWorkers / kBatch, 2);
}

TEST(DealsRunTest, ALargerRatioMakesMoreUpdates) {
  RunSpec spec = GrowingSpec(Rule::Sync(kWorkers));
  const auto early = RunJob(spec, std::make_shared<Trained>());
  spec.job.schedule.growth.ratio = 8;
  const auto late = RunJob(spec, std::make_shared<Trained>());
  ASSERT_TRUE(early.ok() && late.ok()) << early.status() << late.status();
  EXPECT_GT(late->updates(), early->updates());
}

TEST(DealsRunTest, TheNumberOfThreadsChangesNothing) {
  RunSpec spec = GrowingSpec(Rule::Backup(kWorkers, 1));
  spec.machines.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
  const auto one = RunJob(spec, std::make_shared<Trained>(), 1);
  const auto four = RunJob(spec, std::make_shared<Trained>(), 4);
  ASSERT_TRUE(one.ok() && four.ok()) << one.status() << four.status();
  EXPECT_EQ(one->ShortDebugString(), four->ShortDebugString());
  EXPECT_LT(one->updates(), 1000);
}

TEST(DealsRunTest, ASyntheticTaskHasNoDeals) {
  RunSpec spec = GrowingSpec(Rule::Sync(kWorkers));
  spec.machines.mutable_synthetic();
  EXPECT_EQ(RunJob(spec, std::make_shared<Trained>()).status().message(),
            "machines.synthetic: out of range (expected a schedule other than noise_scale, got "
            "noise_scale)");
  spec = BySpeed(LocalSpec(Rule::Sync(kWorkers)));
  spec.machines.mutable_synthetic();
  EXPECT_EQ(RunJob(spec, std::make_shared<Trained>()).status().message(),
            "job.task.auto_local_steps: out of range (expected false with a synthetic task or "
            "imposed staleness, got true)");
}

TEST(DealsRunTest, ASlowWorkerTakesFewerLocalSteps) {
  for (const Rule& rule :
       {Rule::Sync(kWorkers), Rule::Ssp(kWorkers, /*slack=*/2), Rule::Async(kWorkers)}) {
    SCOPED_TRACE(testing::Message() << rule);
    const auto trained = std::make_shared<Trained>();
    const absl::StatusOr<RunResult> result = RunJob(BySpeed(LocalSpec(rule)), trained);
    ASSERT_TRUE(result.ok()) << result.status();
    ExpectEveryExampleOfEveryEpoch(*trained);
    // The last step of an epoch may have fewer examples.
    const auto counts = [&trained](uint32_t worker) {
      std::map<size_t, int> steps;
      for (const auto& [step, examples] : trained->examples[worker]) ++steps[examples / kBatch];
      return steps;
    };
    EXPECT_GT(counts(0)[2], 20) << "a quarter of 8 local steps";
    // In async, the slow worker reaches the step of the deal later.
    EXPECT_LT(counts(0)[8], 60);
    EXPECT_GT(counts(1)[8], 40);
  }
}

TEST(DealsRunTest, LocalStepsBySpeedSaveTheTimeOfWaiting) {
  const auto same = RunJob(LocalSpec(Rule::Sync(kWorkers)), std::make_shared<Trained>());
  const auto by_speed =
      RunJob(BySpeed(LocalSpec(Rule::Sync(kWorkers))), std::make_shared<Trained>());
  ASSERT_TRUE(same.ok() && by_speed.ok()) << same.status() << by_speed.status();
  EXPECT_EQ(same->examples(), by_speed->examples());
  // Eight batches of the slow worker take 3.2 s, and 32 batches are trained in this time. By speed
  // 26 batches take 0.8 s. It is 231 s against 600 s, because the first 20 steps are slow.
  EXPECT_LT(by_speed->seconds(), 0.5 * same->seconds());
}

}  // namespace
}  // namespace thinwire::lab
