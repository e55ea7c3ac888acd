#include "client/exchange/step_progress.h"

#include <gtest/gtest.h>

#include <thread>

namespace thinwire::client {
namespace {

// Two matrices, each with its own shards, and two vectors that share a shard.
Partition TwoLayers() {
  return *Partition::Make({{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 10}}, {"b2", {10}}}, 4096,
                          1);
}

TEST(StepProgressTest, ATensorIsReadyWhenItsLastShardHasArrived) {
  const Partition partition = TwoLayers();
  StepProgress progress(partition);
  const std::vector<ShardId> shards = partition.ShardsOfTensor(0);
  ASSERT_EQ(shards.size(), 2u);
  for (const ShardId shard : shards) progress.ExpectShard(shard);
  progress.ExpectShard(shards[0]);  // a repeated call has no effect
  EXPECT_TRUE(progress.WaitTensor(1).ok()) << "the other tensor is ready";
  std::thread loop([&] {
    for (const ShardId shard : shards) progress.ShardArrived(shard);
  });
  EXPECT_TRUE(progress.WaitTensor(0).ok());
  EXPECT_TRUE(progress.WaitAll().ok());
  loop.join();
}

TEST(StepProgressTest, VectorsThatShareAShardArriveTogether) {
  const Partition partition = TwoLayers();
  StepProgress progress(partition);
  ASSERT_EQ(partition.ShardsOfTensor(1), partition.ShardsOfTensor(3));
  progress.ExpectShard(partition.ShardsOfTensor(1)[0]);
  progress.ShardArrived(partition.ShardsOfTensor(3)[0]);
  EXPECT_TRUE(progress.WaitTensor(1).ok());
  EXPECT_TRUE(progress.WaitTensor(3).ok());
}

TEST(StepProgressTest, WaitNextReturnsTheNextStep) {
  StepProgress progress(TwoLayers());
  progress.BeginStep();
  progress.StepEncoded();
  progress.StepJudged(Step{8});
  EXPECT_TRUE(progress.WaitEncoded().ok());
  EXPECT_EQ(*progress.WaitNext(), Step{8});
}

TEST(StepProgressTest, TheFirstFailureEndsEveryWait) {
  StepProgress progress(TwoLayers());
  progress.BeginStep();
  progress.ExpectShard(ShardId{0});
  std::thread loop([&] {
    progress.Fail(absl::UnavailableError("server 1"));
    progress.Fail(absl::AbortedError("later"));
  });
  EXPECT_EQ(progress.WaitNext().status(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitEncoded(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitAll(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitTensor(0), absl::UnavailableError("server 1"));
  loop.join();
}

}  // namespace
}  // namespace thinwire::client
