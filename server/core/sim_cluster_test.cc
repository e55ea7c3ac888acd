// Whole clusters under trouble, in every mode: all come to their last step, and the books are
// right.
#include "server/core/testing/sim_cluster.h"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>

namespace thinwire {
namespace {

constexpr int kClustersPerMode = 4000;

using DrawRule = std::function<Rule(Dice&)>;

void RunMode(uint64_t first_seed, const DrawRule& draw_rule) {
  SimCounts sum;
  for (int i = 0; i < kClustersPerMode; ++i) {
    const uint64_t seed = first_seed + i;
    Dice dice(seed);
    const Rule rule = draw_rule(dice);
    SimCluster cluster(rule, seed);
    const std::string complaints = cluster.Run();
    ASSERT_EQ(complaints, "") << "seed " << seed << ", " << rule;
    sum.deaths += cluster.counts().deaths;
    sum.expirations += cluster.counts().expirations;
    sum.fenced += cluster.counts().fenced;
    sum.late += cluster.counts().late;
    sum.accepted += cluster.counts().accepted;
    sum.updates += cluster.counts().updates;
    sum.deltas += cluster.counts().deltas;
    sum.wholes += cluster.counts().wholes;
  }
  std::cout << kClustersPerMode << " clusters: " << sum.deaths << " deaths, " << sum.expirations
            << " expired leases, " << sum.accepted << " pushes accepted, " << sum.late << " late, "
            << sum.fenced << " fenced, " << sum.updates << " updates, " << sum.deltas
            << " reads answered with deltas, " << sum.wholes << " with the whole\n";
  EXPECT_GT(sum.deaths, uint64_t{kClustersPerMode});
  EXPECT_GT(sum.late, uint64_t{kClustersPerMode} / 10);
  EXPECT_GT(sum.fenced, uint64_t{kClustersPerMode} / 2);
  EXPECT_GT(sum.deltas, uint64_t{kClustersPerMode} * 10);
  EXPECT_GT(sum.wholes, uint64_t{kClustersPerMode} * 10);
}

uint32_t Workers(Dice& dice) { return 1 + static_cast<uint32_t>(dice.Below(4)); }

TEST(SimClusterTest, SyncComesToItsEnd) {
  RunMode(100000, [](Dice& dice) { return Rule::Sync(Workers(dice)); });
}

TEST(SimClusterTest, OrderedSyncComesToItsEnd) {
  RunMode(200000, [](Dice& dice) { return Rule::Sync(Workers(dice), true); });
}

TEST(SimClusterTest, BackupComesToItsEnd) {
  RunMode(300000, [](Dice& dice) {
    const uint32_t workers = Workers(dice);
    return Rule::Backup(workers, static_cast<uint32_t>(dice.Below(workers)));
  });
}

TEST(SimClusterTest, SspComesToItsEnd) {
  RunMode(400000, [](Dice& dice) {
    const uint32_t workers = Workers(dice);
    const uint64_t slack = dice.Below(4);
    return Rule::Ssp(workers, slack, 1 + static_cast<uint32_t>(dice.Below(4)));
  });
}

TEST(SimClusterTest, AsyncComesToItsEnd) {
  RunMode(500000, [](Dice& dice) {
    const uint32_t workers = Workers(dice);
    return Rule::Async(workers, 1 + static_cast<uint32_t>(dice.Below(4)));
  });
}

}  // namespace
}  // namespace thinwire
