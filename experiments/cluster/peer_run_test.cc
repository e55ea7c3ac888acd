#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "common/codec/payload.h"
#include "common/files/crc32c.h"
#include "experiments/cluster/run.h"
#include "kernels/mix_bits.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/store.h"

namespace thinwire::lab {
namespace {

constexpr size_t kValueCount = 24;
constexpr uint64_t kSteps = 30;
constexpr uint32_t kBatch = 4;

// The function sum((x - m)^2) / 2 with another m for each worker, and noise. With SHORT_BATCH, the
// last batch of worker 0 has one example less.
class QuadraticTask final : public LearningTask {
 public:
  QuadraticTask(uint32_t worker_count, uint64_t seed, bool short_batch)
      : worker_count_(worker_count),
        seed_(seed),
        short_batch_(short_batch),
        initial_(kValueCount, 3.0f) {}

  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t tensor) const override {
    return std::span(initial_).first(tensors_[tensor].value_count());
  }
  uint64_t steps() const override { return kSteps; }
  uint64_t examples() const override {
    return kSteps * kBatch * worker_count_ - (short_batch_ ? 1 : 0);
  }

  absl::StatusOr<GradientResult> Gradient(WorkerId worker, Step step, uint32_t, Tensors parameters,
                                          Tensors gradient) override {
    uint64_t key = (seed_ << 40) + (uint64_t{worker.value} << 24) + (step.value << 8);
    double loss = 0;
    for (size_t t = 0; t < parameters.size(); ++t) {
      for (size_t i = 0; i < parameters[t].size(); ++i) {
        const auto noise = static_cast<double>(static_cast<int64_t>(kernels::MixBits(++key)));
        const double distance = parameters[t][i] - worker.value;
        gradient[t][i] = static_cast<float>(distance + 0x1p-65 * noise);
        loss += distance * distance / 2;
      }
    }
    const bool is_short = short_batch_ && worker.value == 0 && step.value + 1 == kSteps;
    const uint32_t examples = is_short ? kBatch - 1 : kBatch;
    return GradientResult{.loss_sum = loss * examples, .examples = examples};
  }

  absl::StatusOr<TestScore> Test(Tensors parameters) override {
    const double best = (worker_count_ - 1) / 2.0;
    double loss = 0;
    for (const std::span<float> tensor : parameters) {
      for (const float value : tensor) loss += (value - best) * (value - best) / 2;
    }
    return TestScore{.loss = loss, .accuracy = 1 / (1 + loss)};
  }

 private:
  const uint32_t worker_count_;
  const uint64_t seed_;
  const bool short_batch_;
  const std::vector<float> initial_;
  const std::vector<TensorShape> tensors_ = {{"w", {4, 5}}, {"b", {4}}};
};

RunSpec Spec(uint32_t workers, Machines::Exchange::Value exchange) {
  RunSpec spec;
  spec.tests = 5;
  spec.job.rule = Rule::Sync(workers);
  spec.job.optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5};
  spec.job.schedule = {.kind = ScheduleKind::kCosine, .learning_rate = 0.2};
  spec.machines.set_exchange(exchange);
  spec.machines.mutable_compute()->set_distribution(ComputeTime::Distribution::exponential);
  spec.machines.mutable_worker_link()->set_megabits_per_second(1);
  spec.machines.mutable_worker_link()->set_latency_ms(0.2);
  if (exchange == Machines::Exchange::gtopk_tree) {
    spec.job.push.codec = {.id = CodecId::kTopK, .density = 0.25};
  }
  return spec;
}

absl::StatusOr<RunResult> Train(const RunSpec& spec, const RunControl& control = {},
                                bool short_batch = false) {
  const auto make = [&]() -> absl::StatusOr<std::unique_ptr<LearningTask>> {
    return std::make_unique<QuadraticTask>(spec.job.rule.workers, spec.job.task.seed, short_batch);
  };
  return RunPeers(spec, make, control);
}

// Trains with the parts of a server that sums all gradients in the order of the workers. Returns
// the parameters.
std::vector<float> TrainAtServer(const RunSpec& spec, bool short_batch) {
  QuadraticTask task(spec.job.rule.workers, spec.job.task.seed, short_batch);
  const auto optimizer = MakeOptimizer(spec.job.optimizer).value();
  const Schedule schedule = Schedule::Make(spec.job.schedule).value();
  Store store(kValueCount, task.examples(), *optimizer, schedule);
  std::vector<float> values(task.initial(0).begin(), task.initial(0).end());
  values.insert(values.end(), task.initial(1).begin(), task.initial(1).end());
  store.Seed(EncodedPayload(LendFp32(values, nullptr), kValueCount));
  Accumulator accumulator(kValueCount);
  for (uint64_t step = 0; step < kSteps; ++step) {
    values.assign(store.masters().begin(), store.masters().end());
    std::vector<std::vector<float>> gradients(spec.job.rule.workers,
                                              std::vector<float>(kValueCount));
    for (uint32_t w = 0; w < gradients.size(); ++w) {
      const std::span<float> parameters = values;
      const std::span<float> gradient = gradients[w];
      const std::vector<std::span<float>> from = {parameters.first(20), parameters.subspan(20)};
      const std::vector<std::span<float>> to = {gradient.first(20), gradient.subspan(20)};
      const GradientResult result = task.Gradient(WorkerId{w}, Step{step}, 0, from, to).value();
      accumulator.Fold({WorkerId{w}, result.examples, 0,
                        EncodedPayload(LendFp32(gradient, nullptr), kValueCount)});
    }
    store.Apply(accumulator);
  }
  return {store.masters().begin(), store.masters().end()};
}

TEST(PeerRunTest, RingOfTwoWorkersHasTheParametersOfAServer) {
  const RunSpec spec = Spec(2, Machines::Exchange::ring);
  const std::vector<float> server = TrainAtServer(spec, false);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(server));
  const size_t b = 20 * sizeof(float);  // the tensor b comes before w in the checksum
  EXPECT_EQ(Train(spec)->parameters_crc(), Crc32c(bytes.first(b), Crc32c(bytes.subspan(b))));
}

TEST(PeerRunTest, RingOfManyWorkersHasTheParametersOfAServerUpToRounding) {
  const RunSpec spec = Spec(5, Machines::Exchange::ring);
  const RunResult result = Train(spec, {}, true).value();
  EXPECT_EQ(result.updates(), kSteps);
  EXPECT_EQ(result.examples(), kSteps * kBatch * 5 - 1);
  std::vector<float> server = TrainAtServer(spec, true);
  const std::vector<std::span<float>> tensors = {std::span(server).first(20),
                                                 std::span(server).subspan(20)};
  const double loss = QuadraticTask(5, spec.job.task.seed, true).Test(tensors)->loss;
  EXPECT_NEAR(result.point(4).test_loss() / loss, 1, 1e-5);
}

TEST(PeerRunTest, EveryRingFormatLearns) {
  std::set<uint32_t> results;
  for (const auto format :
       {Machines::RingFormat::fp32, Machines::RingFormat::fp16, Machines::RingFormat::int8}) {
    RunSpec spec = Spec(4, Machines::Exchange::ring);
    spec.machines.set_ring_format(format);
    const RunResult result = Train(spec).value();
    EXPECT_LT(result.point(4).test_loss(), 0.01) << format;
    results.insert(result.parameters_crc());
  }
  EXPECT_EQ(results.size(), 3);
}

TEST(PeerRunTest, TreeLearns) {
  const RunResult result = Train(Spec(4, Machines::Exchange::gtopk_tree)).value();
  EXPECT_LT(result.point(4).test_loss(), result.point(0).test_loss() / 2);
}

TEST(PeerRunTest, TheSentValuesAreThoseOfTheLastStep) {
  EXPECT_EQ(Train(Spec(4, Machines::Exchange::ring))->sent_values(), kValueCount);
  // A quarter of the 20 values of the matrix, and the 4 values of the vector.
  EXPECT_EQ(Train(Spec(4, Machines::Exchange::gtopk_tree))->sent_values(), 9u);
}

TEST(PeerRunTest, ResultDependsOnNeitherThreadsNorRepetition) {
  for (const auto exchange : {Machines::Exchange::ring, Machines::Exchange::gtopk_tree}) {
    const RunSpec spec = Spec(8, exchange);
    const RunResult first = Train(spec).value();
    EXPECT_EQ(first.SerializeAsString(), Train(spec, {.threads = 4})->SerializeAsString());
    EXPECT_EQ(first.point_size(), 5);
    RunSpec other = spec;
    other.job.task.seed = 2;
    EXPECT_NE(first.parameters_crc(), Train(other)->parameters_crc());
  }
}

TEST(PeerRunTest, BytesAndTimesAreThoseOfTheMessages) {
  RunSpec spec = Spec(4, Machines::Exchange::ring);
  spec.machines.mutable_compute()->set_distribution(ComputeTime::Distribution::constant);
  spec.machines.mutable_compute()->set_mean_seconds(0.5);
  spec.job.stragglers = {{.worker = WorkerId{1}, .delay = absl::Milliseconds(250)}};
  const RunResult result = Train(spec).value();
  const uint64_t message_bytes = 1 + 4 * kValueCount / 4;
  EXPECT_EQ(result.push_bytes(), kSteps * 4 * 2 * 3 * message_bytes);
  EXPECT_EQ(result.point(4).push_bytes(), result.push_bytes());
  // All workers wait for worker 1.
  const double exchange_seconds = 2 * 3 * (0.4e-3 + 8e-6 * static_cast<double>(message_bytes));
  EXPECT_NEAR(result.median_step_seconds(), 0.75 + exchange_seconds, 1e-2);
  EXPECT_NEAR(result.busy(), (3 * 0.5 + 0.75) / 4 / result.median_step_seconds(), 1e-2);
  EXPECT_EQ(result.steps(), kSteps);
  EXPECT_DOUBLE_EQ(result.point(4).seconds(), result.seconds());
}

TEST(PeerRunTest, SettingsOfServersAreRefused) {
  RunSpec spec = Spec(3, Machines::Exchange::ring);
  spec.job.rule = Rule::Async(3);
  spec.job.pull_codec = CodecId::kBf16;
  spec.job.clip_norm = 1;
  spec.job.task.local.count = 2;
  EXPECT_EQ(Train(spec).status().message(),
            "mode: not supported without servers (expected sync)\n"
            "pull: not supported without servers (expected fp32)\n"
            "clip_norm: not supported without servers (expected 0)\n"
            "local_steps: not supported without servers (expected 1)");
  EXPECT_EQ(Train(Spec(3, Machines::Exchange::gtopk_tree)).status().message(),
            "workers: not supported without servers (expected a power of two in a gTop-k tree)");
  EXPECT_EQ(Train(Spec(25, Machines::Exchange::ring)).status().message(),
            "workers: more workers than values in a ring (expected at most 24, got 25)");
}

TEST(PeerRunTest, RunEndsWhenProgressSaysSo) {
  double done = 0;
  const RunControl control = {.threads = 2, .progress = [&done](double now) {
                                done = now;
                                return now < 0.5;
                              }};
  EXPECT_TRUE(absl::IsCancelled(Train(Spec(2, Machines::Exchange::ring), control).status()));
  EXPECT_DOUBLE_EQ(done, 0.5);
}

}  // namespace
}  // namespace thinwire::lab
