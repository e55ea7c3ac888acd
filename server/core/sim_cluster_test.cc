// Runs simulated clusters with faults in every mode. All workers must reach their last step, and
// the ledgers (testing/sim_ledger.h), which track every gradient, must report no violation.
#include "server/core/testing/sim_cluster.h"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>

namespace thinwire {
namespace {

constexpr int kClustersPerMode = 4000;

using DrawRule = std::function<Rule(SeededRandom&)>;

void RunMode(uint64_t first_seed, const DrawRule& draw_rule) {
  SimCounts sum;
  for (int i = 0; i < kClustersPerMode; ++i) {
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
  std::cout << kClustersPerMode << " clusters: " << sum.deaths << " deaths, " << sum.expirations
            << " expired leases, " << sum.accepted << " pushes accepted, " << sum.late << " late, "
            << sum.fenced << " fenced, " << sum.updates << " updates, " << sum.delta_answers
            << " reads answered with deltas, " << sum.full_answers << " with all values\n";
  EXPECT_GT(sum.accepted, uint64_t{kClustersPerMode} * 10);
  EXPECT_GT(sum.updates, uint64_t{kClustersPerMode} * 5);
  EXPECT_GT(sum.expirations, uint64_t{kClustersPerMode});
  EXPECT_GT(sum.deaths, uint64_t{kClustersPerMode});
  EXPECT_GT(sum.late, uint64_t{kClustersPerMode} / 10);
  EXPECT_GT(sum.fenced, uint64_t{kClustersPerMode} / 2);
  EXPECT_GT(sum.delta_answers, uint64_t{kClustersPerMode} * 10);
  EXPECT_GT(sum.full_answers, uint64_t{kClustersPerMode} * 10);
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
