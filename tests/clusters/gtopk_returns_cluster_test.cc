// Tests real clients and real server jobs in one process, with a gTop-k selection that returns
// unselected values to the workers. Every gradient value is either applied or in a residual, even
// if the transport loses, repeats or delays messages and a worker is restarted.
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
#include "common/codec/codec.h"
#include "common/spec/rule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

constexpr SparseUpdateSpec kReturnsUnselected = {.selection_density = 0.004,
                                                 .unselected_owner = UnselectedOwner::kWorkers};

// Expects that every produced gradient value was either applied or is pending in a residual:
// PRODUCED = APPLIED + PENDING up to rounding. Returns the largest magnitude in APPLIED.
float ExpectConserved(const Tensors& produced, const Tensors& applied, const Tensors& pending) {
  float largest = 0;
  float difference = 0;
  for (size_t t = 0; t < produced.size(); ++t) {
    for (size_t i = 0; i < produced[t].size(); ++i) {
      difference = std::max(difference, std::abs(produced[t][i] - applied[t][i] - pending[t][i]));
      largest = std::max(largest, std::abs(applied[t][i]));
    }
  }
  EXPECT_LT(difference, 0.02f);
  return largest;
}

struct Case {
  std::string name;
  std::optional<PublishOptions> publish;
  CodecSpec push;
  bool corrected = false;
  bool faults = false;
};

class GtopkReturnsTest : public ::testing::TestWithParam<Case> {
 protected:
  // The options disable factor masking, so a worker's momentum depends only on its gradients.
  static ClientOptions Options(uint32_t worker, const Case& c) {
    ClientOptions options;
    options.push = c.push;
    if (c.publish.has_value()) options.pull.reset();
    options.correction = {.enabled = c.corrected, .factor_masking = false};
    options.state_dir = PathOf(worker);
    std::filesystem::remove_all(options.state_dir);
    return options;
  }
  static std::string PathOf(uint32_t worker) {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    return ::testing::TempDir() + "/" + name + std::to_string(worker);
  }
};

TEST_P(GtopkReturnsTest, AllGradientMassIsAppliedOrInResiduals) {
  constexpr uint64_t kSteps = 200;
  SmallCluster cluster(Rule::Sync(2), GetParam().publish, kReturnsUnselected);
  SmallWorker a(cluster, 0, Options(0, GetParam())), b(cluster, 1, Options(1, GetParam()));
  std::thread other([&] { b.Train(Step{kSteps}, GetParam().faults); });
  a.Train(Step{kSteps}, GetParam().faults);
  other.join();
  EXPECT_EQ(a.Parameters(), b.Parameters());

  Tensors produced = Zeros(), pending = Zeros();
  for (uint32_t w = 0; w < 2; ++w) {
    Tensors momentum = Zeros();
    for (uint64_t step = 0; step < kSteps; ++step) {
      if (GetParam().corrected) {
        Subtract(momentum, 0.1f, momentum);
      } else {
        momentum = Zeros();
      }
      Subtract(momentum, -1, Gradient(w, step));
      Subtract(produced, -1, momentum);
    }
    SmallWorker& worker = w == 0 ? a : b;
    ASSERT_TRUE(worker.client().state().Save().ok());
    Subtract(pending, -1, ReadResidualTensors(PathOf(w), WorkerId{w}, worker.client().partition()));
    EXPECT_EQ(worker.client().counters().lost_gtopk_returns(), 0u);
  }
  Tensors applied = Zeros();
  Subtract(applied, -2 / kRate, InitialValues());  // an update is the mean of two gradients
  Subtract(applied, 2 / kRate, cluster.Masters());
  EXPECT_GT(ExpectConserved(produced, applied, pending), 1) << "nothing was applied";
}

constexpr CodecSpec kSparse = {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2};

INSTANTIATE_TEST_SUITE_P(
    Cases, GtopkReturnsTest,
    ::testing::Values(Case{"Full", std::nullopt, kSparse, true, false},
                      Case{"FullFaults", std::nullopt, kSparse, false, true},
                      Case{"Deltas", PublishOptions(), kSparse, false, false},
                      Case{"DeltasFaults", PublishOptions(), kSparse, true, true},
                      Case{"DensePushes", std::nullopt, {.id = CodecId::kFp32}, false, true}),
    [](const auto& test) { return test.param.name; });

// Worker 1 is killed after it has saved its residuals. The next rounds close without worker 1.
TEST(GtopkReturnsRejoinTest, RestartedWorkerKeepsReturnedValues) {
  const std::string path = ::testing::TempDir() + "/gtopk_returns_rejoin";
  std::filesystem::remove_all(path + "0");
  std::filesystem::remove_all(path + "1");
  const auto options = [&](uint32_t worker) {
    ClientOptions options;
    options.push = kSparse;
    options.state_dir = path + std::to_string(worker);
    return options;
  };
  SmallCluster cluster(Rule::Sync(2), std::nullopt, kReturnsUnselected);
  Tensors produced = Zeros(), applied = Zeros(), pending = Zeros();
  Tensors before = InitialValues();
  SmallWorker a(cluster, 0, options(0));
  auto b = std::make_unique<SmallWorker>(cluster, 1, options(1));
  // Runs one round with worker 0 and, unless OTHER is null, with worker 1. The update is the mean
  // of the round's gradients.
  const auto round = [&](Step step, SmallWorker* other) {
    a.Push(step, Gradient(0, step.value));
    Subtract(produced, -1, Gradient(0, step.value));
    if (other != nullptr) {
      other->Push(step, Gradient(1, step.value));
      Subtract(produced, -1, Gradient(1, step.value));
      ASSERT_EQ(other->Next(), step + 1);
    }
    ASSERT_EQ(a.Next(), step + 1);
    const Tensors after = a.Parameters();
    const float pusher_count = other != nullptr ? 2 : 1;
    Subtract(applied, -pusher_count / kRate, before);
    Subtract(applied, pusher_count / kRate, after);
    before = after;
  };
  Step step = a.Join();
  ASSERT_EQ(b->Join(), step);
  for (; step < Step{6}; ++step) round(step, b.get());
  ASSERT_TRUE(b->client().state().Save().ok());
  b.reset();
  cluster.clock().Advance(kLease * 0.6);
  cluster.AwaitHeard(0);
  cluster.clock().Advance(kLease * 0.6);
  cluster.Tick();
  round(step, nullptr);
  ++step;
  SmallWorker again(cluster, 1, options(1));
  const Step first = again.Join();
  for (; step < first; ++step) round(step, nullptr);
  ASSERT_TRUE(again.client().WaitAll().ok());
  for (; step < Step{14}; ++step) round(step, &again);

  ASSERT_TRUE(a.client().state().Save().ok());
  ASSERT_TRUE(again.client().state().Save().ok());
  Subtract(pending, -1, ReadResidualTensors(path + "0", WorkerId{0}, a.client().partition()));
  Subtract(pending, -1, ReadResidualTensors(path + "1", WorkerId{1}, a.client().partition()));
  EXPECT_GT(ExpectConserved(produced, applied, pending), 1) << "nothing was applied";
  EXPECT_EQ(a.client().counters().lost_gtopk_returns(), 0u);
  EXPECT_EQ(again.client().counters().lost_gtopk_returns(), 0u);
}

}  // namespace
}  // namespace thinwire
