// Runs simulated clusters with faults in every mode. All workers must reach their last step, and
// the ledgers (testing/sim_ledger.h), which track every gradient, must report no violation.
//
// THINWIRE_SIM_CLUSTERS sets the number of clusters per mode, and THINWIRE_SIM_FIRST_SEED the seed
// of the first one. Both together repeat a single cluster (docs/testing.md).
#include "server/core/testing/sim_cluster.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>

namespace thinwire {
namespace {

// Fewer clusters may lack some kinds of events.
constexpr uint64_t kClustersWithAllEvents = 1000;

// Returns the value of the environment variable NAME, or OTHERWISE if it is not set.
uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

using DrawRule = std::function<Rule(SeededRandom&)>;

void RunMode(uint64_t first_seed, const DrawRule& draw_rule) {
  const uint64_t cluster_count = FromEnvironment("THINWIRE_SIM_CLUSTERS", 4000);
  first_seed = FromEnvironment("THINWIRE_SIM_FIRST_SEED", first_seed);
  ASSERT_GT(cluster_count, 0);
  SimCounts sum;
  for (uint64_t i = 0; i < cluster_count; ++i) {
    const uint64_t seed = first_seed + i;
    SeededRandom random(seed);
    const Rule rule = draw_rule(random);
    SimCluster cluster(rule, seed);
    const std::string violations = cluster.Run();
    ASSERT_EQ(violations, "") << "seed " << seed << ", " << rule;
    sum.deaths += cluster.counts().deaths;
    sum.expirations += cluster.counts().expirations;
    sum.fenced += cluster.counts().fenced;
    sum.late += cluster.counts().late;
    sum.accepted += cluster.counts().accepted;
    sum.updates += cluster.counts().updates;
    sum.delta_answers += cluster.counts().delta_answers;
    sum.full_answers += cluster.counts().full_answers;
  }
  std::cout << cluster_count << " clusters: " << sum.deaths << " deaths, " << sum.expirations
            << " expired leases, " << sum.accepted << " pushes accepted, " << sum.late << " late, "
            << sum.fenced << " fenced, " << sum.updates << " updates, " << sum.delta_answers
            << " reads answered with deltas, " << sum.full_answers << " with all values\n";
  if (cluster_count < kClustersWithAllEvents) return;
  EXPECT_GT(sum.accepted, cluster_count * 10);
  EXPECT_GT(sum.updates, cluster_count * 5);
  EXPECT_GT(sum.expirations, cluster_count);
  EXPECT_GT(sum.deaths, cluster_count);
  EXPECT_GT(sum.late, cluster_count / 10);
  EXPECT_GT(sum.fenced, cluster_count / 2);
  EXPECT_GT(sum.delta_answers, cluster_count * 10);
  EXPECT_GT(sum.full_answers, cluster_count * 10);
}

uint32_t Workers(SeededRandom& random) { return 1 + static_cast<uint32_t>(random.Below(4)); }

TEST(SimClusterTest, SyncFinishes) {
  RunMode(100000, [](SeededRandom& random) { return Rule::Sync(Workers(random)); });
}

TEST(SimClusterTest, OrderedSyncFinishes) {
  RunMode(200000, [](SeededRandom& random) { return Rule::Sync(Workers(random), true); });
}

TEST(SimClusterTest, BackupFinishes) {
  RunMode(300000, [](SeededRandom& random) {
    const uint32_t workers = Workers(random);
    return Rule::Backup(workers, static_cast<uint32_t>(random.Below(workers)));
  });
}

TEST(SimClusterTest, SspFinishes) {
  RunMode(400000, [](SeededRandom& random) {
    const uint32_t workers = Workers(random);
    const uint64_t slack = random.Below(4);
    return Rule::Ssp(workers, slack, 1 + static_cast<uint32_t>(random.Below(4)));
  });
}

TEST(SimClusterTest, AsyncFinishes) {
  RunMode(500000, [](SeededRandom& random) {
    const uint32_t workers = Workers(random);
    return Rule::Async(workers, 1 + static_cast<uint32_t>(random.Below(4)));
  });
}

}  // namespace
}  // namespace thinwire
