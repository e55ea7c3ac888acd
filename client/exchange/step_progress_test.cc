#include "client/exchange/step_progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/time/clock.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kGrace = absl::InfiniteDuration();

// Two matrices, each with its own shards, and two vectors that share a shard.
Partition TwoLayers() {
  return *Partition::Make({{"w1", {100, 80}}, {"b1", {80}}, {"w2", {80, 10}}, {"b2", {10}}}, 4096,
                          1);
}

TEST(StepProgressTest, ATensorIsReadyWhenItsLastShardHasArrived) {
  const Partition partition = TwoLayers();
  SteadyClock clock;
  StepProgress progress(partition, kGrace, clock);
  const std::vector<ShardId> shards = partition.ShardsOfTensor(0);
  ASSERT_EQ(shards.size(), 2u);
  for (const ShardId shard : shards) progress.OnShardExpected(shard);
  progress.OnShardExpected(shards[0]);  // repeats the call, which has no effect
  EXPECT_TRUE(progress.WaitTensor(1).ok()) << "the other tensor is ready";
  std::thread loop([&] {
    for (const ShardId shard : shards) progress.OnShardArrived(shard);
  });
  EXPECT_TRUE(progress.WaitTensor(0).ok());
  EXPECT_TRUE(progress.WaitAll().ok());
  loop.join();
}

TEST(StepProgressTest, AWaitForShardsGoesOnAfterStop) {
  const Partition partition = TwoLayers();
  ManualClock clock;
  StepProgress progress(partition, absl::Seconds(5), clock);
  const std::vector<ShardId> shards = partition.ShardsOfTensor(0);
  for (const ShardId shard : shards) progress.OnShardExpected(shard);
  progress.OnShardArrived(shards[0]);
  EXPECT_TRUE(progress.WaitShards(std::span(shards).first(1)).ok());
  EXPECT_FALSE(progress.OnShardChanging(shards[0])) << "the worker uses it";
  progress.Stop();
  EXPECT_TRUE(progress.WaitShardsOrStop(shards));
  EXPECT_EQ(progress.WaitAll().code(), absl::StatusCode::kCancelled);
  std::thread loop([&] { progress.OnShardArrived(shards[1]); });
  EXPECT_TRUE(progress.WaitShards(shards).ok());
  loop.join();
  EXPECT_FALSE(progress.WaitShardsOrStop(shards));
  progress.OnShardExpected(shards[0]);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(progress.WaitShards(shards).code(), absl::StatusCode::kCancelled);
}

TEST(StepProgressTest, VectorsThatShareAShardArriveTogether) {
  const Partition partition = TwoLayers();
  SteadyClock clock;
  StepProgress progress(partition, kGrace, clock);
  ASSERT_EQ(partition.ShardsOfTensor(1), partition.ShardsOfTensor(3));
  progress.OnShardExpected(partition.ShardsOfTensor(1)[0]);
  progress.OnShardArrived(partition.ShardsOfTensor(3)[0]);
  EXPECT_TRUE(progress.WaitTensor(1).ok());
  EXPECT_TRUE(progress.WaitTensor(3).ok());
}

TEST(StepProgressTest, WaitNextReturnsTheNextStep) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  progress.BeginStep();
  progress.OnStepEncoded();
  progress.OnNextStep(Step{8});
  EXPECT_TRUE(progress.WaitEncoded().ok());
  EXPECT_EQ(*progress.WaitNext(), Step{8});
}

TEST(StepProgressTest, TheFirstFailureEndsEveryWait) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  progress.BeginStep();
  progress.OnShardExpected(ShardId{0});
  std::thread loop([&] {
    progress.OnFailure(absl::UnavailableError("server 1"));
    progress.OnFailure(absl::AbortedError("later"));
  });
  EXPECT_EQ(progress.WaitNext().status(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitEncoded(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitAll(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitTensor(0), absl::UnavailableError("server 1"));
  loop.join();
}

TEST(StepProgressTest, AStopEndsWaitsForParametersAtOnce) {
  const Partition partition = TwoLayers();
  SteadyClock clock;
  StepProgress progress(partition, kGrace, clock);
  progress.OnShardExpected(partition.ShardsOfTensor(0)[0]);
  std::thread stopper([&] { progress.Stop(); });
  EXPECT_EQ(progress.WaitAll(), absl::CancelledError("stopped"));
  EXPECT_EQ(progress.WaitTensor(0), absl::CancelledError("stopped"));
  EXPECT_TRUE(progress.WaitTensor(2).ok()) << "the parameters of the tensor have arrived";
  stopper.join();
}

TEST(StepProgressTest, APushInFlightIsAwaitedAfterAStop) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  progress.BeginStep();
  progress.Stop();
  std::thread loop([&] {
    progress.OnStepEncoded();
    progress.OnNextStep(Step{8});
  });
  EXPECT_TRUE(progress.WaitEncoded().ok());
  EXPECT_EQ(*progress.WaitNext(), Step{8});
  loop.join();
}

TEST(StepProgressTest, AStoppedWaitForPushesEndsWithTheDrainTime) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), absl::ZeroDuration(), clock);
  progress.BeginStep();
  progress.Stop();
  EXPECT_EQ(progress.WaitEncoded(), absl::CancelledError("stopped"));
  EXPECT_EQ(progress.WaitNext().status(), absl::CancelledError("stopped"));
}

TEST(StepProgressTest, ADrainingWorkerWaitsForParametersAfterAStop) {
  const Partition partition = TwoLayers();
  const ShardId shard = partition.ShardsOfTensor(0)[0];
  SteadyClock clock;
  StepProgress progress(partition, kGrace, clock);
  EXPECT_EQ(progress.drain_end(), absl::InfiniteFuture());
  progress.OnShardExpected(shard);
  progress.Stop();
  EXPECT_EQ(progress.WaitAll(), absl::CancelledError("stopped"));
  progress.Drain();
  std::thread loop([&] { progress.OnShardArrived(shard); });
  EXPECT_TRUE(progress.WaitAll().ok());
  loop.join();
}

TEST(StepProgressTest, AWaitForParametersEndsWithTheDrainTime) {
  const Partition partition = TwoLayers();
  SteadyClock clock;
  StepProgress progress(partition, absl::ZeroDuration(), clock);
  progress.OnShardExpected(ShardId{0});
  progress.Stop();
  progress.Drain();
  EXPECT_EQ(progress.WaitAll(), absl::CancelledError("stopped"));
}

TEST(StepProgressTest, AWaitCheckEndsEveryWait) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  int checks = 0;
  progress.SetWaitCheck([&] {
    progress.Stop();  // may be called, because no lock is held
    return ++checks % 3 != 0;
  });
  progress.BeginStep();
  progress.OnShardExpected(ShardId{0});
  EXPECT_EQ(progress.WaitEncoded(), absl::CancelledError("stopped"));
  EXPECT_EQ(checks, 3) << "a stopped wait for pushes goes on";
  EXPECT_EQ(progress.WaitNext().status(), absl::CancelledError("stopped"));
  EXPECT_EQ(checks, 6);
  EXPECT_EQ(progress.WaitAll(), absl::CancelledError("stopped"));
  EXPECT_EQ(checks, 6) << "a stopped wait for parameters ends at once";
}

TEST(StepProgressTest, AWaitCheckThatGoesOnChangesNothing) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  std::atomic<int> checks = 0;
  progress.SetWaitCheck([&] {
    ++checks;
    return true;
  });
  progress.OnShardExpected(ShardId{0});
  std::thread loop([&] {
    while (checks < 2) std::this_thread::yield();
    progress.OnShardArrived(ShardId{0});
  });
  EXPECT_TRUE(progress.WaitAll().ok());
  loop.join();
}

TEST(StepProgressTest, AFailureIsReportedAlsoAfterAStop) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  progress.OnShardExpected(ShardId{0});
  progress.Stop();
  progress.OnFailure(absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.WaitAll(), absl::UnavailableError("server 1"));
}

TEST(StepProgressTest, ARollbackEndsEveryWaitUntilRestart) {
  const Partition partition = TwoLayers();
  SteadyClock clock;
  StepProgress progress(partition, kGrace, clock);
  progress.BeginStep();
  progress.OnShardExpected(ShardId{0});
  EXPECT_EQ(progress.rollback(), std::nullopt);
  std::thread loop([&] {
    progress.OnRollback(Generation{2});
    progress.OnFailure(absl::UnavailableError("later"));
    progress.OnRollback(Generation{3});
  });
  const absl::Status expected =
      absl::AbortedError("the servers continue from an earlier step (generation 2)");
  EXPECT_EQ(progress.WaitNext().status(), expected);
  EXPECT_EQ(progress.WaitAll(), expected);
  loop.join();
  EXPECT_EQ(progress.rollback(), Generation{2});
  progress.Restart();
  EXPECT_EQ(progress.rollback(), std::nullopt);
  EXPECT_EQ(progress.failure(), absl::OkStatus());
  EXPECT_TRUE(progress.WaitAll().ok()) << "no shard is expected any more";
  progress.OnShardExpected(ShardId{0});
  progress.Stop();
  progress.Restart();
  progress.OnShardExpected(ShardId{0});
  EXPECT_EQ(progress.WaitAll(), absl::CancelledError("stopped"));
}

TEST(StepProgressTest, ARollbackAfterAFailureHasNoEffect) {
  SteadyClock clock;
  StepProgress progress(TwoLayers(), kGrace, clock);
  progress.OnFailure(absl::UnavailableError("server 1"));
  progress.OnRollback(Generation{2});
  EXPECT_EQ(progress.failure(), absl::UnavailableError("server 1"));
  EXPECT_EQ(progress.rollback(), std::nullopt);
}

}  // namespace
}  // namespace thinwire::client
