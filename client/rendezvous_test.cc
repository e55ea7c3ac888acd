#include "client/rendezvous.h"

#include <gtest/gtest.h>

#include <thread>

namespace thinwire::client {
namespace {

// Two matrices with shards of their own, two vectors that share one.
Partition TwoLayers() {
  return *Partition::Make({{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 10}}, {"b2", {10}}}, 4096,
                          1);
}

TEST(RendezvousTest, ATensorIsThereWhenItsLastShardIs) {
  const Partition partition = TwoLayers();
  Rendezvous rendezvous(partition);
  const std::vector<ShardId> shards = partition.ShardsOfTensor(0);
  ASSERT_EQ(shards.size(), 2u);
  for (const ShardId shard : shards) rendezvous.Expect(shard);
  rendezvous.Expect(shards[0]);  // said twice, counted once
  EXPECT_TRUE(rendezvous.WaitTensor(1).ok()) << "another tensor does not wait";
  std::thread loop([&] {
    for (const ShardId shard : shards) rendezvous.Arrive(shard);
  });
  EXPECT_TRUE(rendezvous.WaitTensor(0).ok());
  EXPECT_TRUE(rendezvous.WaitAll().ok());
  loop.join();
}

TEST(RendezvousTest, VectorsThatShareAShardComeTogether) {
  const Partition partition = TwoLayers();
  Rendezvous rendezvous(partition);
  ASSERT_EQ(partition.ShardsOfTensor(1), partition.ShardsOfTensor(3));
  rendezvous.Expect(partition.ShardsOfTensor(1)[0]);
  rendezvous.Arrive(partition.ShardsOfTensor(3)[0]);
  EXPECT_TRUE(rendezvous.WaitTensor(1).ok());
  EXPECT_TRUE(rendezvous.WaitTensor(3).ok());
}

TEST(RendezvousTest, AStepIsJudgedOnce) {
  Rendezvous rendezvous(TwoLayers());
  rendezvous.BeginStep();
  rendezvous.Encoded();
  rendezvous.Judged(Step{8});
  EXPECT_TRUE(rendezvous.WaitEncoded().ok());
  EXPECT_EQ(*rendezvous.WaitNext(), Step{8});
}

TEST(RendezvousTest, TheFirstFailureEndsEveryWait) {
  Rendezvous rendezvous(TwoLayers());
  rendezvous.BeginStep();
  rendezvous.Expect(ShardId{0});
  std::thread loop([&] {
    rendezvous.Fail(absl::UnavailableError("server 1"));
    rendezvous.Fail(absl::AbortedError("later"));
  });
  EXPECT_EQ(rendezvous.WaitNext().status(), absl::UnavailableError("server 1"));
  EXPECT_EQ(rendezvous.WaitEncoded(), absl::UnavailableError("server 1"));
  EXPECT_EQ(rendezvous.WaitAll(), absl::UnavailableError("server 1"));
  EXPECT_EQ(rendezvous.WaitTensor(0), absl::UnavailableError("server 1"));
  loop.join();
}

}  // namespace
}  // namespace thinwire::client
