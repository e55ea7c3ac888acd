#include "client/exchange/step_gradients.h"

#include <gtest/gtest.h>

#include <vector>

#include "client/replica/shard_values.h"

namespace thinwire::client {
namespace {

Partition TwoLayers() {
  return *Partition::Make({{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 10}}, {"b2", {10}}}, 4096,
                          1);
}

std::vector<std::vector<ShardId>> OneFragment(const Partition& partition) {
  std::vector<ShardId> all;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) all.push_back(ShardId{s});
  return {all};
}

TEST(StepGradientsTest, ShardsAreTakenInAscendingOrder) {
  const Partition partition = TwoLayers();
  const auto fragments = OneFragment(partition);
  StepGradients step(partition, fragments);
  EXPECT_TRUE(step.done()) << "before the first step";
  step.Begin();
  std::vector<std::vector<float>> gradients;
  for (const TensorShape& t : partition.tensors()) gradients.emplace_back(t.value_count());

  const uint32_t last = partition.segments(ShardId{0})[0].tensor;
  for (uint32_t t = 0; t < 4; ++t) {
    if (t != last) step.Ready(t, gradients[t]);
  }
  EXPECT_FALSE(step.NextIsReady()) << "shard 0 belongs to the tensor that is not ready";
  step.Ready(last, gradients[last]);
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    ASSERT_TRUE(step.NextIsReady());
    EXPECT_EQ(step.next(), ShardId{s});
    uint64_t count = 0;
    for (const Segment& segment : step.Take().segments) count += segment.count;
    EXPECT_EQ(count, partition.value_count(ShardId{s}));
  }
  EXPECT_TRUE(step.done());
  step.Begin();
  EXPECT_FALSE(step.NextIsReady());
}

TEST(StepGradientsTest, ASharedShardIsReadyAfterAllItsVectors) {
  const Partition partition = *Partition::Make({{"a", {3}}, {"b", {2}}}, 4096, 1);
  ASSERT_EQ(partition.shard_count(), 1u);
  const auto fragments = OneFragment(partition);
  StepGradients step(partition, fragments);
  step.Begin();
  const std::vector<float> a = {1, 2, 3}, b = {4, 5};
  step.Ready(1, b);
  EXPECT_FALSE(step.NextIsReady());
  step.Ready(0, a);
  ASSERT_TRUE(step.NextIsReady());
  float sum = 0;
  std::vector<float> scratch;
  const ShardGradient taken = step.Take();
  for (const float v : Gather(taken.segments, taken.tensors, scratch)) sum += v;
  EXPECT_EQ(sum, 15);
}

TEST(StepGradientsTest, OwnersArePassedOnForSingleSegmentsAndReleasedWithTheStep) {
  const Partition partition = *Partition::Make({{"w", {2, 3}}, {"a", {3}}, {"b", {2}}}, 4096, 1);
  ASSERT_EQ(partition.shard_count(), 2u);
  const auto fragments = OneFragment(partition);
  StepGradients step(partition, fragments);
  step.Begin();
  const std::vector<float> values(6);
  const auto owner = std::make_shared<int>();
  for (uint32_t t = 0; t < 3; ++t) {
    step.Ready(t, std::span(values).first(partition.tensors()[t].value_count()), owner);
  }
  while (!step.done()) {
    const bool alone = partition.segments(step.next()).size() == 1;
    EXPECT_EQ(step.Take().owner, alone ? owner : nullptr);
  }
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(StepGradientsTest, FragmentsAreTakenInTheirOrder) {
  const Partition partition = *Partition::Make({{"w", {128, 80}}, {"b", {2}}}, 4096, 1);
  ASSERT_EQ(partition.shard_count(), 4u);
  const std::vector<std::vector<ShardId>> fragments = {{ShardId{1}, ShardId{3}},
                                                       {ShardId{0}, ShardId{2}}};
  StepGradients step(partition, fragments);
  step.Begin();
  const std::vector<float> w(128 * 80), b(2);
  const std::vector<std::span<const float>> values = {w, b};
  for (uint32_t f = 0; f < 2; ++f) {
    EXPECT_FALSE(step.NextIsReady());
    step.ReadyFragment(f, values);
    for (const ShardId shard : fragments[f]) {
      ASSERT_TRUE(step.NextIsReady());
      EXPECT_EQ(step.next(), shard);
      const ShardGradient taken = step.Take();
      EXPECT_EQ(taken.tensors[0].data(), w.data());
    }
  }
  EXPECT_TRUE(step.done());
  step.Begin();
  step.ReadyFragment(1, values);
  EXPECT_FALSE(step.NextIsReady()) << "fragment 0 comes first";
}

}  // namespace
}  // namespace thinwire::client
