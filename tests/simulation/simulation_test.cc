// Runs simulated clusters with faults: 204 seeds, spread over modes, durabilities and codecs, and
// 4,000 seeds without durability. A violation prints the seed and the command that repeats it.
#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace thinwire::simulation {
namespace {

constexpr uint64_t kSeedsPerPair = 17;    // 12 pairs of a mode and a durability: 204 seeds
constexpr uint64_t kSeedsPerMode = 1000;  // without durability

class SimulationTest : public ::testing::TestWithParam<uint64_t> {};

// The parameter is the first seed of a pair of a mode and a durability.
TEST_P(SimulationTest, Promise13ClustersWithFaultsKeepEveryPromise) {
  SimulationCounts sum;
  for (uint64_t i = 0; i < kSeedsPerPair; ++i) {
    const uint64_t seed = GetParam() + 12 * i;
    Simulation simulation(OptionsOf(seed));
    ASSERT_EQ(simulation.Run(), "")
        << simulation.job() << "\nbazel run //tests/simulation:simulate -- --seed " << seed
        << " --trace";
    sum.Add(simulation.counts());
  }
  std::cout << sum << std::endl;
  const Durability durability = OptionsOf(GetParam()).durability;
  EXPECT_GT(sum.accepted, 10 * kSeedsPerPair);
  EXPECT_GT(sum.updates, 10 * kSeedsPerPair);
  EXPECT_GT(sum.worker_deaths, kSeedsPerPair / 2);
  if (durability == Durability::kNone) return;
  EXPECT_GT(sum.server_deaths, kSeedsPerPair / 2);
  EXPECT_GT(sum.power_losses, 0u);
  EXPECT_GT(sum.disk_faults, 0u);
  if (durability == Durability::kLog) {
    EXPECT_GT(sum.rule_changes, 0u);
  }
  if (durability == Durability::kCheckpoint) {
    EXPECT_GT(sum.undone, 0u);
  }
  const bool may_clip =
      OptionsOf(GetParam()).mode == Mode::kSync && durability == Durability::kCheckpoint;
  EXPECT_EQ(sum.clipped > 0, may_clip);
}

class ShardRulesTest : public ::testing::TestWithParam<uint64_t> {};

// The parameter is the first seed of a mode. Jobs without durability run faster, so more of them
// check the rules of docs/consistency.md.
TEST_P(ShardRulesTest, Promise13NoGradientIsLostOrAppliedTwice) {
  SimulationCounts sum;
  for (uint64_t i = 1; i <= kSeedsPerMode; ++i) {
    const uint64_t seed = GetParam() + 12 * (kSeedsPerPair + i);
    Simulation simulation(OptionsOf(seed));
    ASSERT_EQ(simulation.Run(), "")
        << simulation.job() << "\nbazel run //tests/simulation:simulate -- --seed " << seed
        << " --trace";
    sum.Add(simulation.counts());
  }
  std::cout << sum << std::endl;
  EXPECT_GT(sum.accepted, 10 * kSeedsPerMode);
  EXPECT_GT(sum.updates, 10 * kSeedsPerMode);
  EXPECT_GT(sum.worker_deaths, kSeedsPerMode);
  EXPECT_GT(sum.expired_leases, kSeedsPerMode);
  EXPECT_GT(sum.late, 0u);
  EXPECT_GT(sum.fenced, 0u);
  EXPECT_GT(sum.delta_answers, kSeedsPerMode);
  EXPECT_GT(sum.full_answers, kSeedsPerMode);
  EXPECT_GT(sum.rule_changes, kSeedsPerMode / 10);
  if (OptionsOf(GetParam()).mode == Mode::kSync) {
    EXPECT_GT(sum.clipped, kSeedsPerMode);
    EXPECT_GT(sum.unclipped, kSeedsPerMode);
  }
}

INSTANTIATE_TEST_SUITE_P(AllModes, ShardRulesTest, ::testing::Range(uint64_t{0}, uint64_t{4}),
                         [](const ::testing::TestParamInfo<uint64_t>& info) {
                           return std::string(kModeNames[info.param]);
                         });

// Rules of the recovery are broken on purpose, with a seed that meets the consequence. The same
// seed without the broken rule keeps every promise. rollback_test.cc tests the step of a rollback.
TEST(BrokenRuleTest, ABrokenRuleIsFound) {
  struct Case {
    BrokenRule broken;
    uint64_t seed;
  };
  constexpr Case kCases[] = {
      {BrokenRule::kVerdictNotSaved, 787},     {BrokenRule::kSentBeforeFlush, 8},
      {BrokenRule::kResidualOfAnotherStep, 2}, {BrokenRule::kClippedByOwnNorm, 12},
      {BrokenRule::kRuleNotPassedOn, 20},      {BrokenRule::kServersNotReminded, 330},
      {BrokenRule::kRuleNotStored, 43},        {BrokenRule::kOldRuleFollowed, 37}};
  for (const auto& [broken, seed] : kCases) {
    SimulationOptions options = OptionsOf(seed);
    EXPECT_EQ(Simulation(options).Run(), "") << "seed " << seed;
    options.broken = broken;
    EXPECT_NE(Simulation(options).Run(), "") << kBrokenRuleNames[static_cast<size_t>(broken)];
  }
}

INSTANTIATE_TEST_SUITE_P(AllPairs, SimulationTest, ::testing::Range(uint64_t{0}, uint64_t{12}),
                         [](const ::testing::TestParamInfo<uint64_t>& info) {
                           const SimulationOptions options = OptionsOf(info.param);
                           return std::string(kModeNames[static_cast<size_t>(options.mode)]) + "_" +
                                  kDurabilityNames[static_cast<size_t>(options.durability)];
                         });

}  // namespace
}  // namespace thinwire::simulation
