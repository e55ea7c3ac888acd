#include "experiments/aggregation.h"

#include <gtest/gtest.h>

#include "experiments/toy_run.h"

namespace thinwire {
namespace {

constexpr size_t kSelected = 5;

ToySettings Settings(size_t worker_count) {
  return {.value_count = 500, .worker_count = worker_count, .step_count = 200};
}

TEST(AggregationTest, TreeOfPeersLosesMass) {
  for (const size_t workers : {4, 8, 32}) {
    const ToySettings settings = Settings(workers);
    const auto tree = MakeTreeAggregation(settings.value_count, workers, kSelected);
    const ToyOutcome outcome = RunToy(settings, *tree);
    EXPECT_GT(outcome.leak, 1e-3) << workers << " workers";
    EXPECT_GT(outcome.missing, 1e-4) << workers << " workers";
  }
}

TEST(AggregationTest, TreeOfTwoPeersLosesNoMass) {
  const ToySettings settings = Settings(2);
  const auto tree = MakeTreeAggregation(settings.value_count, 2, kSelected);
  EXPECT_LT(RunToy(settings, *tree).missing, 1e-6);
}

TEST(AggregationTest, KeepingUnselectedValuesAtTheServerLosesNoMass) {
  for (const size_t workers : {4, 8, 32}) {
    const ToySettings settings = Settings(workers);
    const auto server = MakeServerAggregation(settings.value_count, workers, kSelected);
    EXPECT_LT(RunToy(settings, *server).missing, 1e-6) << workers << " workers";
  }
}

TEST(AggregationTest, ExactSumWithReturnedValuesLosesNoMass) {
  const ToySettings settings = Settings(8);
  const auto exact = MakeExactAggregation(settings.value_count, 8, kSelected);
  EXPECT_LT(RunToy(settings, *exact).missing, 1e-6);
}

TEST(AggregationTest, KeepingUnselectedValuesAtTheServerEndsLowerThanReturningThem) {
  const ToySettings settings = {.worker_count = 8, .rate = 0.02, .step_count = 1000};
  const auto server = MakeServerAggregation(settings.value_count, 8, 10);
  const auto exact = MakeExactAggregation(settings.value_count, 8, 10);
  EXPECT_LT(RunToy(settings, *server).loss, RunToy(settings, *exact).loss);
}

}  // namespace
}  // namespace thinwire
