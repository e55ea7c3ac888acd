#include "experiments/cluster/gtopk_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/mix_bits.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {
namespace {

constexpr size_t kValueCount = 1000;
constexpr double kDensity = 0.01;

client::PushSchedule Schedule(const PushWarmup& warmup = {}, uint64_t planned_steps = 0) {
  return client::PushSchedule::Make({.id = CodecId::kTopK, .density = kDensity}, warmup,
                                    planned_steps)
      .value();
}

// A task that computes nothing; the pool of an exchange needs one.
class NoTask final : public LearningTask {
 public:
  const std::vector<TensorShape>& tensors() const override { return tensors_; }
  std::span<const float> initial(uint32_t) const override { return {}; }
  uint64_t steps() const override { return 0; }
  uint64_t examples() const override { return 0; }
  absl::StatusOr<GradientResult> Gradient(WorkerId, Step, uint32_t, Tensors, Tensors) override {
    return GradientResult();
  }
  absl::StatusOr<TestScore> Test(Tensors) override { return TestScore(); }

 private:
  std::vector<TensorShape> tensors_;
};

std::unique_ptr<TaskPool> Pool() {
  return TaskPool::Make([] { return std::make_unique<NoTask>(); }, 2).value();
}

Partition Model(const std::vector<TensorShape>& tensors = {{"m", {1, kValueCount}}}) {
  return Partition::Make(tensors, /*shard_size=*/0, /*server_count=*/1).value();
}

// Returns a number between -1 and 1.
float Random(uint64_t key) {
  return static_cast<float>(static_cast<int64_t>(kernels::MixBits(key))) * 0x1p-63f;
}

// Returns gradients that have a common part.
std::vector<std::vector<float>> RandomGradients(size_t worker_count, uint64_t step) {
  std::vector<std::vector<float>> gradients(worker_count);
  uint64_t key = step << 32;
  for (std::vector<float>& gradient : gradients) {
    for (size_t i = 0; i < kValueCount; ++i) gradient.push_back(Random(i) + Random(++key));
  }
  return gradients;
}

// Runs STEPS exchanges of random gradients. Returns the sum of the magnitudes of all values that
// are neither applied nor in a residual at the end, as a part of the magnitudes of all gradients.
double MissingMass(size_t worker_count, uint64_t steps) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(worker_count), queue);
  GtopkTree tree(Model(), worker_count, Schedule(), {}, CodecCosts({}), queue, network,
                 [](size_t) {});
  const auto pool = Pool();
  std::vector<double> missing(kValueCount);
  double mass = 0;
  for (uint64_t step = 0; step < steps; ++step) {
    const std::vector<std::vector<float>> gradients = RandomGradients(worker_count, step);
    std::vector<float> sum(kValueCount);
    tree.Sum(Step{step}, gradients, *pool, sum);
    EXPECT_EQ(std::ranges::count_if(sum, [](float value) { return value != 0; }),
              kDensity * kValueCount);
    for (size_t i = 0; i < kValueCount; ++i) {
      for (const std::vector<float>& gradient : gradients) {
        missing[i] += gradient[i];
        mass += std::abs(gradient[i]);
      }
      missing[i] -= sum[i];
    }
  }
  double total = 0;
  for (size_t i = 0; i < kValueCount; ++i) {
    for (size_t w = 0; w < worker_count; ++w) missing[i] -= tree.residual(w)[i];
    total += std::abs(missing[i]);
  }
  return total / mass;
}

TEST(GtopkTreeTest, TimeOfAStepFollowsTheFormula) {
  const LinkSpec link = {.bits_per_second = 1e6, .latency = absl::Microseconds(50)};
  const double message = 100e-6 + 8.0 * 8 * kDensity * kValueCount / 1e6;
  size_t rounds = 0;
  for (const size_t workers : {1, 2, 4, 8, 16, 32}) {
    VirtualTime queue;
    LinkModel network(std::vector<LinkSpec>(workers, link), queue);
    size_t done_count = 0;
    absl::Duration last;
    GtopkTree tree(Model(), workers, Schedule(), {}, CodecCosts({}), queue, network, [&](size_t) {
      ++done_count;
      last = queue.elapsed();
    });
    for (size_t w = 0; w < workers; ++w) tree.Begin(w);
    while (!queue.empty()) queue.RunNext();
    EXPECT_EQ(done_count, workers);
    EXPECT_NEAR(absl::ToDoubleSeconds(last), 2 * static_cast<double>(rounds) * message, 1e-7)
        << workers << " workers";
    ++rounds;
  }
}

TEST(GtopkTreeTest, WorkersSelectAndMergeInVirtualTime) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(2), queue);
  std::vector<absl::Duration> done(2);
  Machines machines;
  CodecCost& cost = *machines.add_codec_cost();
  cost.set_codec(Compression::Codec::topk);
  cost.set_encode_ns_per_value(1);
  cost.set_decode_ns_per_value(10);
  GtopkTree tree(Model(), 2, Schedule(), {}, CodecCosts(machines), queue, network,
                 [&](size_t worker) { done[worker] = queue.elapsed(); });
  tree.Begin(0);
  tree.Begin(1);
  while (!queue.empty()) queue.RunNext();
  EXPECT_EQ(done[0], absl::Nanoseconds(1000 + 10 * 10));
  EXPECT_EQ(done[1], done[0] + absl::Nanoseconds(10 * 10));
}

TEST(GtopkTreeTest, WarmupBeginsWithLargerMessages) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(2), queue);
  std::vector<uint64_t> sent;
  const PushWarmup warmup = {.density = {.part = 0.5, .first = 0.1}};
  GtopkTree tree(Model(), 2, Schedule(warmup, 4), {}, CodecCosts({}), queue, network,
                 [](size_t) {});
  for (int step = 0; step < 4; ++step) {
    tree.Begin(0);
    tree.Begin(1);
    while (!queue.empty()) queue.RunNext();
    sent.push_back(network.sent_bytes(1));
  }
  // Densities of .1, .0316, .01 and .01.
  EXPECT_EQ(sent, (std::vector<uint64_t>{800, 800 + 256, 800 + 256 + 80, 800 + 256 + 160}));
}

TEST(GtopkTreeTest, TwoWorkersLoseNoMass) { EXPECT_LT(MissingMass(2, 20), 1e-6); }

TEST(GtopkTreeTest, LargerTreesLoseMass) {
  for (const size_t workers : {4, 8, 32}) {
    EXPECT_GT(MissingMass(workers, 20), 1e-4) << workers << " workers";
  }
}

TEST(GtopkTreeTest, EachShardCountsAsAtServers) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(2), queue);
  // 900 values send 9, small matrices at least one each, and vectors all 20.
  GtopkTree tree(Model({{"a", {9, 100}}, {"b", {4, 10}}, {"c", {5, 8}}, {"d", {20}}}), 2,
                 Schedule(), {}, CodecCosts({}), queue, network, [](size_t) {});
  EXPECT_EQ(tree.SentValues(Step{0}), 9u + 1 + 1 + 20);
  const auto pool = Pool();
  std::vector<float> sum(kValueCount);
  tree.Sum(Step{0}, RandomGradients(2, 0), *pool, sum);
  EXPECT_EQ(std::ranges::count_if(sum, [](float value) { return value != 0; }), 31);
}

TEST(GtopkTreeTest, MomentumIsAppliedBeforeTheSelection) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(1), queue);
  // One worker that sends one of four values per step.
  const CorrectionOptions correction = {.enabled = true, .momentum = 0.5f};
  GtopkTree tree(Model({{"m", {2, 2}}}), 1,
                 client::PushSchedule::Make({.id = CodecId::kTopK, .density = 0.25}, {}, 0).value(),
                 correction, CodecCosts({}), queue, network, [](size_t) {});
  const auto pool = Pool();
  const std::vector<std::vector<float>> gradients = {{8, 4, 0, 0}};
  std::vector<float> sum(4);
  tree.Sum(Step{0}, gradients, *pool, sum);
  EXPECT_EQ(sum, (std::vector<float>{8, 0, 0, 0}));
  // The momentum of the sent value is 0, that of the other one is 4.
  tree.Sum(Step{1}, gradients, *pool, sum);
  EXPECT_EQ(sum, (std::vector<float>{0, 4 + 6, 0, 0}));
  EXPECT_EQ(tree.residual(0)[0], 8);
}

}  // namespace
}  // namespace thinwire::lab
