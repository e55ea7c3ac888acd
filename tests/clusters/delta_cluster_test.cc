// Tests real clients that read deltas from real server jobs in one process. Their replicas equal
// the published parameters, even if the transport loses, repeats or delays messages.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "common/spec/rule.h"
#include "server/core/publish/delta_publisher.h"
#include "tests/clusters/small_cluster.h"

namespace thinwire {
namespace {

// The step at which workers stop. Before this step, the servers publish two versions that have a
// hash.
constexpr Step kLast{40};

ClientOptions DeltaReader() {
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.05};
  options.pull = std::nullopt;
  return options;
}

struct Case {
  std::string name;
  Rule rule;
  PublishOptions publish;
  bool faults = false;
};

class DeltaClusterTest : public ::testing::TestWithParam<Case> {};

TEST_P(DeltaClusterTest, ReplicasEqualThePublishedParameters) {
  const auto& [name, rule, publish, faults] = GetParam();
  SmallCluster cluster(rule, publish);
  SmallWorker a(cluster, 0, DeltaReader()), b(cluster, 1, DeltaReader());
  std::thread other([&] { b.Train(kLast, GetParam().faults); });
  a.Train(kLast, faults);
  other.join();
  const Tensors last_of_a = a.Parameters(), last_of_b = b.Parameters();
  for (SmallWorker* worker : {&a, &b}) {
    EXPECT_TRUE(worker->client().Leave().ok());
    const WorkerCounters counters = worker->client().counters();
    EXPECT_EQ(counters.differing_replicas(), 0u);
    // A worker that jumps to a later step sends no reads for the steps that it skips. Only backup
    // mode has jumps.
    if (rule.fold == Fold::kPush || rule.quorum == rule.workers) {
      EXPECT_EQ(counters.jumped_steps(), 0u);
    }
    if (counters.jumped_steps() == 0) {
      EXPECT_GE(counters.pull_bytes_raw(),
                kLast.value * sizeof(float) * worker->client().partition().value_count());
      // A worker that skips most steps mainly receives its first parameters, in full.
      if (publish.log_bytes != 0) {
        EXPECT_LT(counters.pull_bytes_encoded(), counters.pull_bytes_raw() / 2);
      }
    }
  }
  // A new process of worker 0 has no parameters, so it receives whole shards.
  SmallWorker late(cluster, 0, DeltaReader());
  late.Join();
  const Tensors published = late.Parameters();
  if (rule.fold == Fold::kRound) {
    EXPECT_EQ(last_of_a, published);
    EXPECT_EQ(last_of_b, published);
  }
  if (!publish.codec.has_value()) {
    EXPECT_EQ(published, cluster.Masters());
  }
}

const PublishOptions kExact;
const PublishOptions kExactInPairs{.every = 2};
const PublishOptions kNoLog{.log_bytes = 0};
const PublishOptions kFp8{.codec = CodecSpec{.id = CodecId::kFp8E5m2}};
const PublishOptions kTopK{.codec = CodecSpec{.id = CodecId::kTopK, .density = .05},
                           .log_bytes = 3000};

INSTANTIATE_TEST_SUITE_P(Cases, DeltaClusterTest,
                         ::testing::Values(Case{"Sync", Rule::Sync(2), kExact},
                                           Case{"SyncFaults", Rule::Sync(2), kExact, true},
                                           Case{"SyncNoLog", Rule::Sync(2), kNoLog},
                                           Case{"SyncFp8", Rule::Sync(2), kFp8},
                                           Case{"SyncTopKFaults", Rule::Sync(2), kTopK, true},
                                           Case{"Backup", Rule::Backup(2, 1), kExact},
                                           Case{"BackupTopK", Rule::Backup(2, 1), kTopK},
                                           Case{"Ssp", Rule::Ssp(2, 1), kExact},
                                           Case{"SspFp8Faults", Rule::Ssp(2, 1), kFp8, true},
                                           Case{"Async", Rule::Async(2), kExactInPairs},
                                           Case{"AsyncFaults", Rule::Async(2), kExact, true},
                                           Case{"AsyncTopK", Rule::Async(2), kTopK}),
                         [](const auto& test) { return test.param.name; });

TEST(DeltaReadersTest, FullAndDeltaReadersGetTheSameParameters) {
  SmallCluster cluster(Rule::Sync(2), kExact);
  ClientOptions masters = DeltaReader();
  masters.pull = CodecId::kFp32;
  SmallWorker a(cluster, 0, DeltaReader()), b(cluster, 1, masters);
  std::thread other([&] { b.Train(Step{10}, false); });
  a.Train(Step{10}, false);
  other.join();
  EXPECT_EQ(a.Parameters(), b.Parameters());
  EXPECT_LT(a.client().counters().pull_bytes_encoded(),
            b.client().counters().pull_bytes_encoded() / 3);
}

TEST(DeltaReadersTest, DamagedReplicaIsReplaced) {
  SmallCluster cluster(Rule::Sync(1), kExact);
  ClientOptions options = DeltaReader();
  options.push.density = 0.001;
  SmallWorker worker(cluster, 0, options);
  Step step = worker.Join();
  for (; step < Step{20}; step = worker.Next()) {
    worker.Parameters();  // waits until the client has written all shards of the replica
    if (step == Step{3}) worker.client().replica(0)[4321] += 1;
    worker.Push(step, Gradient(0, step.value));
  }
  EXPECT_EQ(worker.Parameters(), cluster.Masters());
  EXPECT_EQ(worker.client().counters().differing_replicas(), 1u);
}

TEST(DeltaReadersTest, JobWithoutDeltasRefusesDeltaReaders) {
  SmallCluster cluster(Rule::Sync(1));
  SmallWorker worker(cluster, 0, DeltaReader());
  worker.Join();
  const absl::Status status = worker.client().WaitAll();
  EXPECT_NE(std::string(status.message()).find("this job does not publish deltas"),
            std::string::npos)
      << status;
}

}  // namespace
}  // namespace thinwire
