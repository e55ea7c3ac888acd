// Tests real clients and real server jobs in one process. The final parameters equal those of a
// direct computation, even if the transport loses, repeats or delays messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "common/spec/rule.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

struct Mode {
  std::string name;
  Rule rule;
  bool faults = false;
};

class EveryPushCountsTest : public ::testing::TestWithParam<Mode> {};

// In sync, an update is the mean of the round's gradients. In ssp and async, each push makes an
// update.
TEST_P(EveryPushCountsTest, FinalParametersEqualADirectComputation) {
  constexpr uint32_t kWorkers = 2;
  constexpr Step kLast{12};
  SmallCluster cluster(GetParam().rule);
  std::vector<std::unique_ptr<SmallWorker>> workers;
  for (uint32_t w = 0; w < kWorkers; ++w)
    workers.push_back(std::make_unique<SmallWorker>(cluster, w));
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&worker] { worker->Train(kLast, GetParam().faults); });
  }
  for (std::thread& thread : threads) thread.join();
  // Leave waits for outstanding verdicts. When the last worker leaves, the servers apply the
  // accepted gradients that are not yet part of an update.
  const bool sync = GetParam().rule.fold == Fold::kRound;
  if (sync) {
    EXPECT_EQ(workers[0]->Parameters(), workers[1]->Parameters());
  }
  for (auto& worker : workers) EXPECT_TRUE(worker->client().Leave().ok());

  Tensors expected = InitialValues();
  for (uint32_t w = 0; w < kWorkers; ++w) {
    for (uint64_t s = 0; s < kLast.value; ++s) {
      Subtract(expected, sync ? kRate / kWorkers : kRate, Gradient(w, s));
    }
  }
  EXPECT_EQ(cluster.Masters(), expected);
  for (auto& worker : workers) {
    const WorkerCounters counters = worker->client().counters();
    EXPECT_EQ(counters.accepted_pushes(), kLast.value * worker->client().partition().shard_count());
    EXPECT_EQ(counters.late_pushes(), 0u);
    if (GetParam().faults) {
      EXPECT_GT(counters.reconnects(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, EveryPushCountsTest,
    ::testing::Values(Mode{"Sync", Rule::Sync(2)}, Mode{"SyncOrdered", Rule::Sync(2, true)},
                      Mode{"SyncFaults", Rule::Sync(2), true}, Mode{"Ssp", Rule::Ssp(2, 1)},
                      Mode{"SspFaults", Rule::Ssp(2, 1), true}, Mode{"Async", Rule::Async(2)},
                      Mode{"AsyncFaults", Rule::Async(2), true}),
    [](const auto& test) { return test.param.name; });

// The pushes of worker 2 are late in six rounds. In the seventh round, its push arrives first and
// contains the six late gradients. The mean of that round is weighted with the examples of the late
// gradients, too.
TEST(BackupTest, LatePushesReturnWithTheirExamples) {
  constexpr uint64_t kRounds = 6;
  SmallCluster cluster(Rule::Backup(3, 1));
  SmallWorker a(cluster, 0), b(cluster, 1), late(cluster, 2);
  Step step = a.Join();
  b.Join();
  Step late_step = late.Join();
  Tensors expected = InitialValues();
  for (; step.value < kRounds; ++step) {
    a.Push(step, Gradient(0, step.value));
    b.Push(step, Gradient(1, step.value));
    ASSERT_EQ(a.Next(), step + 1);
    ASSERT_EQ(b.Next(), step + 1);
    ASSERT_EQ(late_step, step);
    late.Push(late_step, Gradient(2, step.value));
    late_step = late.Next();
    Subtract(expected, kRate / 2, Gradient(0, step.value));
    Subtract(expected, kRate / 2, Gradient(1, step.value));
  }
  late.Push(step, Gradient(2, step.value));
  ASSERT_EQ(late.Next(), step + 1);
  a.Push(step, Gradient(0, step.value));
  ASSERT_EQ(a.Next(), step + 1);
  constexpr float kWeight = 2 + kRounds;
  Subtract(expected, kRate / kWeight, Gradient(0, step.value));
  for (uint64_t s = 0; s <= kRounds; ++s) Subtract(expected, kRate / kWeight, Gradient(2, s));

  EXPECT_EQ(a.Parameters(), expected);
  EXPECT_EQ(late.Parameters(), expected);
  EXPECT_EQ(late.client().counters().late_pushes(),
            kRounds * late.client().partition().shard_count());
}

TEST(BackupTest, StragglerJumpsToTheOpenRound) {
  SmallCluster cluster(Rule::Backup(3, 1));
  SmallWorker a(cluster, 0), b(cluster, 1), late(cluster, 2);
  Step step = a.Join();
  b.Join();
  const Step late_step = late.Join();
  ASSERT_TRUE(late.client().WaitAll().ok());
  for (; step.value < 5; ++step) {
    a.Push(step, Gradient(0, step.value));
    b.Push(step, Gradient(1, step.value));
    a.Next();
    b.Next();
  }
  late.Push(late_step, Gradient(2, 0));
  EXPECT_EQ(late.Next(), Step{5});
  EXPECT_EQ(late.client().counters().jumped_steps(), 1u);
  EXPECT_EQ(late.Parameters(), a.Parameters());
}

// The rounding error of fp8 is at most an eighth of a value. With error feedback, the deviation of
// the masters from the exact parameters is never larger than the current residuals.
TEST(ErrorFeedbackTest, Fp8RoundingErrorsAreSentLater) {
  constexpr Step kLast{40};
  SmallCluster cluster(Rule::Async(2));
  ClientOptions options;
  options.push.id = CodecId::kFp8E5m2;
  SmallWorker a(cluster, 0, options), b(cluster, 1, options);
  std::thread other([&] { b.Train(kLast, true); });
  a.Train(kLast, true);
  other.join();
  EXPECT_TRUE(a.client().Leave().ok());
  EXPECT_TRUE(b.client().Leave().ok());
  Tensors expected = InitialValues();
  float largest = 0;
  for (uint32_t w = 0; w < 2; ++w) {
    for (uint64_t s = 0; s < kLast.value; ++s) Subtract(expected, kRate, Gradient(w, s));
  }
  const Tensors masters = cluster.Masters();
  for (size_t t = 0; t < masters.size(); ++t) {
    for (size_t i = 0; i < masters[t].size(); ++i) {
      largest = std::max(largest, std::abs(masters[t][i] - expected[t][i]));
    }
  }
  // The residual of each of the two workers is at most 1/8 of the encoded value, which is at most 2
  // (the gradient) plus 1/4 (the previous residual). Without error feedback, the deviation would be
  // tens of times larger.
  EXPECT_LE(largest, kRate * 2 * (2.25f / 8) + 1e-4f);
}

TEST(SeedTest, OneWorkerUploadsTheFirstValuesOfAShard) {
  constexpr uint32_t kWorkers = 8;
  SmallCluster cluster(Rule::Sync(kWorkers));
  std::vector<std::unique_ptr<SmallWorker>> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.push_back(std::make_unique<SmallWorker>(cluster, w));
    workers[w]->Join();
  }
  for (const auto& worker : workers) EXPECT_EQ(worker->Parameters(), InitialValues());
  const Partition& partition = workers[0]->client().partition();
  EXPECT_EQ(cluster.SeedBytes(), partition.shard_count() + 4 * partition.value_count());
}

TEST(ResidualTest, ResidualsOfAnotherRunAreNotRestored) {
  const std::string path = testing::TempDir() + "/residuals_of_another_run";
  std::filesystem::remove_all(path);
  const auto join = [&path](RunId run) {
    SmallCluster cluster(Rule::Async(1), std::nullopt, {}, run);
    ClientOptions options;
    options.push = {.id = CodecId::kFp8E5m2};
    options.state_dir = path;
    SmallWorker worker(cluster, 0, options);
    worker.Join();
    EXPECT_TRUE(worker.client().state().Save().ok());
    return worker.client().state().restored();
  };
  EXPECT_THAT(join(RunId{1}), HasSubstr("no file yet"));
  EXPECT_THAT(join(RunId{1}), HasSubstr("restored"));
  EXPECT_THAT(join(RunId{2}), HasSubstr("not restored: from another run"));
}

TEST(RejoinTest, RestartedWorkerJoinsOneStepAheadOfTheOpenRound) {
  SmallCluster cluster(Rule::Sync(2));
  SmallWorker a(cluster, 0);
  auto killed = std::make_unique<SmallWorker>(cluster, 1);
  const Step step = a.Join();
  killed->Join();
  a.Push(step, Gradient(0, 0));
  killed->Push(step, Gradient(1, 0));
  ASSERT_EQ(a.Next(), step + 1);
  killed->Next();
  killed.reset();
  // Handles the last messages of the killed worker. A message that a server handles after the clock
  // has advanced would renew the worker's lease.
  cluster.Tick();

  // Worker 0 sends heartbeats in the middle of the lease; worker 1 does not.
  cluster.clock().Advance(kLease * 0.6);
  cluster.AwaitHeard(0);
  cluster.clock().Advance(kLease * 0.6);
  cluster.Tick();
  a.Push(step + 1, Gradient(0, 1));
  ASSERT_EQ(a.Next(), step + 2);
  Tensors expected = a.Parameters();  // parameters after round 1, which closed without worker 1

  SmallWorker again(cluster, 1);
  const Step first = again.Join();
  EXPECT_EQ(first, step + 3) << "one ahead of the open round";
  a.Push(step + 2, Gradient(0, 2));
  ASSERT_EQ(a.Next(), step + 3);
  Subtract(expected, kRate, Gradient(0, 2));
  // The server has answered the read of the restarted worker. The worker is therefore live, and the
  // next round waits for it.
  EXPECT_EQ(again.Parameters(), expected);
  a.Push(step + 3, Gradient(0, 3));
  again.Push(first, Gradient(1, 3));
  ASSERT_EQ(a.Next(), step + 4);
  ASSERT_EQ(again.Next(), step + 4);
  Subtract(expected, kRate / 2, Gradient(0, 3));
  Subtract(expected, kRate / 2, Gradient(1, 3));
  EXPECT_EQ(again.Parameters(), expected);
  EXPECT_EQ(a.Parameters(), expected);
}

}  // namespace
}  // namespace thinwire
