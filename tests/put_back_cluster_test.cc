// Real clients and real jobs in one process, with a selection that gives the rest back to the
// workers: what was produced is what was applied and what is owed, whatever the wire did and
// whoever came back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/encode/residual_file.h"
#include "common/codec/codec.h"
#include "common/partition.h"
#include "common/spec/rule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "tests/small_cluster.h"

namespace thinwire {
namespace {

constexpr SparseUpdateSpec kGivesBack = {.selection_density = 0.004,
                                         .unselected_owner = UnselectedOwner::kWorkers};

Tensors Zeros() {
  Tensors tensors = InitialValues();
  for (std::vector<float>& tensor : tensors) tensor.assign(tensor.size(), 0.0f);
  return tensors;
}

// What the file at PATH holds of every tensor's residual is added to SUM.
void AddResiduals(const std::string& path, WorkerId worker, const Partition& partition,
                  Tensors& sum) {
  const auto saved =
      client::ReadResiduals(path, {.job = ClientOptions().job, .worker = worker}, partition);
  ASSERT_TRUE(saved.ok()) << saved.status();
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const std::vector<float>& residual = saved->shards[s].residual;
    if (residual.empty()) continue;
    size_t place = 0;
    for (const Segment& segment : partition.segments(ShardId{s})) {
      for (uint64_t i = 0; i < segment.count; ++i) {
        sum[segment.tensor][segment.offset + i] += residual[place++];
      }
    }
  }
}

// Returns the largest magnitude of APPLIED.
float ExpectSame(const Tensors& produced, const Tensors& applied, const Tensors& owed) {
  float largest = 0;
  float wrong = 0;
  for (size_t t = 0; t < produced.size(); ++t) {
    for (size_t i = 0; i < produced[t].size(); ++i) {
      wrong = std::max(wrong, std::abs(produced[t][i] - applied[t][i] - owed[t][i]));
      largest = std::max(largest, std::abs(applied[t][i]));
    }
  }
  EXPECT_LT(wrong, 0.02f);
  return largest;
}

struct Case {
  std::string name;
  std::optional<PublishOptions> publish;
  CodecSpec push;
  bool corrected = false;
  bool faults = false;
};

class PutBackTest : public ::testing::TestWithParam<Case> {
 protected:
  // Without factor masking what is produced depends on the gradients alone.
  static ClientOptions Options(uint32_t worker, const Case& c) {
    ClientOptions options;
    options.push = c.push;
    if (c.publish.has_value()) options.pull.reset();
    options.correction = {.enabled = c.corrected, .factor_masking = false};
    options.residual_file = PathOf(worker);
    std::remove(options.residual_file.c_str());
    return options;
  }
  static std::string PathOf(uint32_t worker) {
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    return ::testing::TempDir() + "/" + name + std::to_string(worker);
  }
};

TEST_P(PutBackTest, WhatWasProducedIsAppliedOrOwedAfterManySteps) {
  constexpr uint64_t kSteps = 200;
  SmallCluster cluster(Rule::Sync(2), GetParam().publish, kGivesBack);
  SmallWorker a(cluster, 0, Options(0, GetParam())), b(cluster, 1, Options(1, GetParam()));
  std::thread other([&] { b.Train(Step{kSteps}, GetParam().faults); });
  a.Train(Step{kSteps}, GetParam().faults);
  other.join();
  EXPECT_EQ(a.Parameters(), b.Parameters());

  Tensors produced = Zeros(), owed = Zeros();
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
    ASSERT_TRUE(worker.client().SaveResiduals().ok());
    AddResiduals(PathOf(w), WorkerId{w}, worker.client().partition(), owed);
    EXPECT_EQ(worker.client().counters().lost_gtopk_returns(), 0u);
  }
  Tensors applied = Zeros();
  Subtract(applied, -2 / kRate, InitialValues());  // a round's update is the mean of two
  Subtract(applied, 2 / kRate, cluster.Masters());
  EXPECT_GT(ExpectSame(produced, applied, owed), 1) << "something was applied at all";
}

constexpr CodecSpec kSparse = {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2};

INSTANTIATE_TEST_SUITE_P(
    Cases, PutBackTest,
    ::testing::Values(Case{"Full", std::nullopt, kSparse, true, false},
                      Case{"FullFaults", std::nullopt, kSparse, false, true},
                      Case{"Deltas", PublishOptions(), kSparse, false, false},
                      Case{"DeltasFaults", PublishOptions(), kSparse, true, true},
                      Case{"DensePushes", std::nullopt, {.id = CodecId::kFp32}, false, true}),
    [](const auto& test) { return test.param.name; });

// Worker 1 is killed when it has saved what it owes, and its round after that goes on without it.
TEST(PutBackRejoinTest, AWorkerThatComesBackOwesWhatWasGivenBackToIt) {
  const std::string path = ::testing::TempDir() + "/put_back_rejoin";
  std::remove((path + "0").c_str());
  std::remove((path + "1").c_str());
  const auto options = [&](uint32_t worker) {
    ClientOptions options;
    options.push = kSparse;
    options.residual_file = path + std::to_string(worker);
    return options;
  };
  SmallCluster cluster(Rule::Sync(2), std::nullopt, kGivesBack);
  Tensors produced = Zeros(), applied = Zeros(), owed = Zeros();
  Tensors before = InitialValues();
  SmallWorker a(cluster, 0, options(0));
  auto b = std::make_unique<SmallWorker>(cluster, 1, options(1));
  // A round of those who are there, of which the update is the mean.
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
    const float givers = other != nullptr ? 2 : 1;
    Subtract(applied, -givers / kRate, before);
    Subtract(applied, givers / kRate, after);
    before = after;
  };
  Step step = a.Join();
  ASSERT_EQ(b->Join(), step);
  for (; step < Step{6}; ++step) round(step, b.get());
  ASSERT_TRUE(b->client().SaveResiduals().ok());
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

  ASSERT_TRUE(a.client().SaveResiduals().ok());
  ASSERT_TRUE(again.client().SaveResiduals().ok());
  AddResiduals(path + "0", WorkerId{0}, a.client().partition(), owed);
  AddResiduals(path + "1", WorkerId{1}, a.client().partition(), owed);
  EXPECT_GT(ExpectSame(produced, applied, owed), 1) << "something was applied at all";
  EXPECT_EQ(a.client().counters().lost_gtopk_returns(), 0u);
  EXPECT_EQ(again.client().counters().lost_gtopk_returns(), 0u);
}

}  // namespace
}  // namespace thinwire
