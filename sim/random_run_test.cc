// Runs simulated clusters with faults, spread over modes, durabilities and codecs, and shows that the
// ledgers find every mutant. A violation prints the seed and the command that repeats it.
#include "sim/random_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>

namespace thinwire::sim {
namespace {

constexpr uint64_t kSeedsPerPair = 17;   // 12 pairs of a mode and a durability: 204 seeds
constexpr uint64_t kSeedsPerMode = 250;  // without durability, which run faster

// Runs the cluster of SEED with an empty folder for the residuals.
RandomRun RunOf(uint64_t seed, Mutant mutant = Mutant::kNone) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / std::to_string(seed);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  RandomRun run = RunSeed(seed, folder, mutant);
  std::filesystem::remove_all(folder);
  return run;
}

// The sums of the runs of COUNT seeds from FIRST, each the twelfth one.
struct Sums {
  LedgerCounts ledger;
  FaultCounts faults;
};

void RunSeeds(uint64_t first, uint64_t count, Sums& sums) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + 12 * i;
    const RandomRun run = RunOf(seed);
    ASSERT_EQ(run.violations, "") << DrawSpec(seed) << "\nbazel run //sim:simulate -- --seed "
                                  << seed << " --trace";
    sums.ledger.Add(run.counts);
    sums.faults.Add(run.faults);
  }
  std::cout << sums.faults << "\n" << sums.ledger << std::endl;
}

class RandomRunTest : public ::testing::TestWithParam<uint64_t> {};

// The parameter is the first seed of a pair of a mode and a durability.
TEST_P(RandomRunTest, Promise13ClustersWithFaultsKeepEveryPromise) {
  Sums sums;
  ASSERT_NO_FATAL_FAILURE(RunSeeds(GetParam(), kSeedsPerPair, sums));
  EXPECT_GT(sums.ledger.accepted, 10 * kSeedsPerPair);
  EXPECT_GT(sums.ledger.updates, 10 * kSeedsPerPair);
  EXPECT_GT(sums.ledger.checked_masses, 10 * kSeedsPerPair);
  EXPECT_GT(sums.ledger.checked_replicas, 10 * kSeedsPerPair);
  EXPECT_GT(sums.faults.dead_workers, kSeedsPerPair / 2);
  EXPECT_GT(sums.faults.suspended_workers, 0u);
  EXPECT_GT(sums.faults.suspended_servers, 0u);
  const Durability durability = DurabilityOf(GetParam());
  if (durability == Durability::kNone) return;
  EXPECT_GT(sums.faults.dead_servers, kSeedsPerPair / 2);
  EXPECT_GT(sums.faults.drained_servers, 0u);
  EXPECT_GT(sums.faults.power_losses, 0u);
  EXPECT_GT(sums.faults.disk_crashes, 0u);
  if (durability == Durability::kCheckpoint) {
    EXPECT_GT(sums.ledger.undone, 0u);
  }
}

class ShardRulesTest : public ::testing::TestWithParam<uint64_t> {};

// The parameter is the first seed of a mode.
TEST_P(ShardRulesTest, Promise13NoGradientIsLostOrAppliedTwice) {
  Sums sums;
  ASSERT_NO_FATAL_FAILURE(RunSeeds(GetParam() + 12 * kSeedsPerPair, kSeedsPerMode, sums));
  EXPECT_GT(sums.faults.gave_up, 0u);
  EXPECT_GT(sums.ledger.fenced, 0u);
  EXPECT_GT(sums.ledger.split_leases, 0u);
  EXPECT_GT(sums.ledger.accepted, 10 * kSeedsPerMode);
  EXPECT_GT(sums.ledger.updates, 10 * kSeedsPerMode);
  EXPECT_GT(sums.ledger.late, 0u);
  EXPECT_GT(sums.ledger.rule_changes, 0u);
  EXPECT_GT(sums.ledger.restored_residuals, 0u);
  EXPECT_GT(sums.ledger.delta_answers, kSeedsPerMode);
  EXPECT_GT(sums.ledger.full_answers, kSeedsPerMode);
  if (ModeOf(GetParam()) == 0) {
    EXPECT_GT(sums.ledger.clipped, kSeedsPerMode);
  }
}

// A process had the number of a suspended worker and ended before it could join the shards. The
// suspended one pushed meanwhile, so the lead's shards waited for it for ever.
TEST(FoundSeedTest, AFencedWorkerHoldsNobodyBack) { EXPECT_EQ(RunOf(193).violations, ""); }

// The seeds meet the consequence of the mutant. Without the mutant they keep every promise.
TEST(MutantTest, EveryMutantIsFound) {
  struct Case {
    Mutant mutant;
    uint64_t seed;
  };
  constexpr Case kCases[] = {
      {Mutant::kVerdictNotSaved, 56},        {Mutant::kSentBeforeFlush, 8},
      {Mutant::kResidualOfAnotherStep, 197}, {Mutant::kSumsOfLeadAlone, 12},
      {Mutant::kRuleNotPassedOn, 18},        {Mutant::kServersNotReminded, 18},
      {Mutant::kRuleNotStored, 53},          {Mutant::kOldRuleFollowed, 99},
      {Mutant::kRollbackToAnotherStep, 977}, {Mutant::kBegunTooEarly, 2}};
  for (const auto& [mutant, seed] : kCases) {
    EXPECT_EQ(RunOf(seed).violations, "") << "seed " << seed;
    EXPECT_NE(RunOf(seed, mutant).violations, "") << kMutantNames[static_cast<size_t>(mutant)];
  }
}

constexpr uint64_t kSharedSeeds = 4;  // of each pair

// A tensor of lars or lamb that shards of all servers share, without a log in sync and backup. Each
// update has many values, so the seeds are few.
TEST(SharedTensorTest, Promise13TrustRatiosKeepEveryPromise) {
  for (const uint64_t pair : {0, 1, 4, 5}) {
    const uint64_t first = kFirstTrustSeed + pair;
    ASSERT_LT(ModeOf(first), 2u);
    ASSERT_NE(DurabilityOf(first), Durability::kLog);
    Sums sums;
    ASSERT_NO_FATAL_FAILURE(RunSeeds(first, kSharedSeeds, sums));
    EXPECT_GT(sums.ledger.shared, 10 * kSharedSeeds);
    if (DurabilityOf(first) == Durability::kNone) continue;
    EXPECT_GT(sums.faults.dead_servers, 0u);
    EXPECT_GT(sums.ledger.undone, 0u);
  }
}

TEST(SharedTensorTest, AMutantIsFound) {
  EXPECT_NE(RunOf(kFirstTrustSeed, Mutant::kSumsOfLeadAlone).violations, "");
}

INSTANTIATE_TEST_SUITE_P(AllModes, ShardRulesTest, ::testing::Range(uint64_t{0}, uint64_t{4}),
                         [](const ::testing::TestParamInfo<uint64_t>& info) {
                           return std::string(kModeNames[info.param]);
                         });

INSTANTIATE_TEST_SUITE_P(AllPairs, RandomRunTest, ::testing::Range(uint64_t{0}, uint64_t{12}),
                         [](const ::testing::TestParamInfo<uint64_t>& info) {
                           return std::string(kModeNames[ModeOf(info.param)]) + "_" +
                                  kDurabilityNames[static_cast<int>(DurabilityOf(info.param))];
                         });

}  // namespace
}  // namespace thinwire::sim
