// Tests real clients that send sparse pushes to real server jobs in one process. No gradient is
// lost and no gradient is applied twice, even with late pushes and restarted workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "common/spec/rule.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

class SparseClusterTest : public ::testing::Test {
 protected:
  SparseClusterTest() { std::filesystem::remove_all(path_); }

  ClientOptions Sparse() const {
    ClientOptions options;
    options.push = {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2};
    options.correction.enabled = true;
    options.state_dir = path_;
    return options;
  }

  const std::string path_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

// Each round accepts only its first push. Worker 1 is first in every third round and late in all
// other rounds. Worker 0 pushes zeros. Without factor masking, the momentum of worker 1 depends
// only on the gradients of worker 1.
TEST_F(SparseClusterTest, LateMomentumCorrectedPushesAreAppliedOrInResiduals) {
  constexpr uint64_t kRounds = 12;
  SmallCluster cluster(Rule::Backup(2, 1));
  ClientOptions options = Sparse();
  options.correction.factor_masking = false;
  SmallWorker zero(cluster, 0), sparse(cluster, 1, options);
  Step step = zero.Join();
  ASSERT_EQ(sparse.Join(), step);
  const Tensors initial = InitialValues();
  const Tensors zeros = Zeros();
  Tensors momentum = zeros, produced = zeros, applied = zeros;
  Tensors before = initial;
  float late_count = 0;
  for (; step.value < kRounds; ++step) {
    const bool is_first = step.value % 3 == 2;
    const Tensors gradient = Gradient(1, step.value);
    for (size_t t = 0; t < gradient.size(); ++t) {
      for (size_t i = 0; i < gradient[t].size(); ++i) {
        momentum[t][i] = 0.9f * momentum[t][i] + gradient[t][i];
        produced[t][i] += momentum[t][i];
      }
    }
    SmallWorker& first = is_first ? sparse : zero;
    SmallWorker& second = is_first ? zero : sparse;
    first.Push(step, is_first ? gradient : zeros);
    ASSERT_EQ(first.Next(), step + 1);
    second.Push(step, is_first ? zeros : gradient);
    ASSERT_EQ(second.Next(), step + 1);
    if (!is_first) {
      ++late_count;
      continue;
    }
    // The mean of a round is also weighted with the examples of the late pushes whose values it
    // contains.
    const Tensors after = cluster.Masters();
    Subtract(applied, (1 + late_count) / kRate, after);
    Subtract(applied, -(1 + late_count) / kRate, before);
    before = after;
    late_count = 0;
  }
  ASSERT_TRUE(sparse.client().state().Save().ok());
  const Tensors pending = ReadResidualTensors(path_, WorkerId{1}, sparse.client().partition());
  float largest = 0;
  for (size_t t = 0; t < pending.size(); ++t) {
    for (size_t i = 0; i < pending[t].size(); ++i) {
      ASSERT_NEAR(produced[t][i], applied[t][i] + pending[t][i], 2e-3) << t << " " << i;
      largest = std::max(largest, std::abs(applied[t][i]));
    }
  }
  EXPECT_GT(largest, 1) << "nothing was applied";
  EXPECT_EQ(sparse.client().counters().late_pushes(),
            kRounds * 2 / 3 * sparse.client().partition().shard_count());
}

// Pushes gradient number NUMBER of worker 0 in step STEP, and sets STEP to the worker's next step.
void PushNumber(SmallWorker& worker, Step& step, uint64_t number) {
  worker.Push(step, Gradient(0, number));
  step = worker.Next();
}

TEST_F(SparseClusterTest, RestoredResidualsGiveTheSameModelAsAnUninterruptedRun) {
  SmallCluster steady(Rule::Sync(1)), interrupted(Rule::Sync(1));
  ClientOptions without_file = Sparse();
  without_file.state_dir.clear();
  SmallWorker stays(steady, 0, without_file);
  Step step = stays.Join();
  for (uint64_t i = 0; i < 10; ++i) PushNumber(stays, step, i);

  {
    SmallWorker first(interrupted, 0, Sparse());
    step = first.Join();
    EXPECT_THAT(first.client().state().restored(), HasSubstr("no file yet"));
    for (uint64_t i = 0; i < 5; ++i) PushNumber(first, step, i);
    ASSERT_TRUE(first.client().state().Save().ok());
    ASSERT_TRUE(first.client().Leave().ok());
  }
  SmallWorker second(interrupted, 0, Sparse());
  step = second.Join();
  EXPECT_THAT(second.client().state().restored(), HasSubstr("saved before step 5, restored"));
  for (uint64_t i = 5; i < 10; ++i) PushNumber(second, step, i);
  EXPECT_EQ(interrupted.Masters(), steady.Masters());
}

TEST_F(SparseClusterTest, OutdatedResidualFileIsNotApplied) {
  SmallCluster cluster(Rule::Sync(1));
  {
    SmallWorker killed(cluster, 0, Sparse());
    Step step = killed.Join();
    PushNumber(killed, step, 0);
    ASSERT_TRUE(killed.client().state().Save().ok());
    PushNumber(killed, step, 1);
  }
  // As after a loss of power, the file of the process's memory is lost, too.
  std::filesystem::remove(path_ + "/worker-0/live");
  cluster.clock().Advance(kLease * 2);
  cluster.Tick();
  SmallWorker again(cluster, 0, Sparse());
  again.Join();
  EXPECT_THAT(
      again.client().state().restored(),
      HasSubstr("saved before step 1, not restored: the worker has pushed up to step 2 since"));
  ASSERT_TRUE(again.client().state().Save().ok());
  EXPECT_EQ(ReadResidualTensors(path_, WorkerId{0}, again.client().partition()), Zeros());
}

TEST_F(SparseClusterTest, RejoinWithoutAFileReportsLostResiduals) {
  SmallCluster cluster(Rule::Sync(1));
  ClientOptions options = Sparse();
  options.state_dir.clear();
  {
    SmallWorker first(cluster, 0, options);
    Step step = first.Join();
    EXPECT_EQ(first.client().state().restored(), "");
    PushNumber(first, step, 0);
    ASSERT_TRUE(first.client().Leave().ok());
  }
  SmallWorker second(cluster, 0, options);
  second.Join();
  EXPECT_THAT(second.client().state().restored(), HasSubstr("are lost"));
}

TEST_F(SparseClusterTest, ResidualFileOfAnotherWorkerFailsTheJoin) {
  SmallCluster cluster(Rule::Sync(2));
  SmallWorker zero(cluster, 0, Sparse());
  zero.Join();
  ASSERT_TRUE(zero.client().state().Save().ok());
  std::filesystem::copy(path_ + "/worker-0", path_ + "/worker-1");
  SmallWorker one(cluster, 1, Sparse());
  const Tensors initial = InitialValues();
  const std::vector<std::span<const float>> spans(initial.begin(), initial.end());
  const absl::StatusOr<Step> joined = one.client().Join(spans);
  EXPECT_TRUE(absl::IsFailedPrecondition(joined.status())) << joined.status();
  EXPECT_THAT(std::string(joined.status().message()), HasSubstr("(expected worker 1, got 0)"));
}

}  // namespace
}  // namespace thinwire
