#include "server/core/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "absl/status/status.h"

namespace thinwire {
namespace {

absl::Status Made(const OptimizerSpec& spec) { return MakeOptimizer(spec).status(); }

TEST(MakeOptimizerTest, ReportsEveryProblemOfTheSpec) {
  EXPECT_EQ(Made({.momentum = 1, .beta1 = -0.5}),
            absl::InvalidArgumentError(
                "momentum: out of range (expected at least 0 and below 1, got 1)\n"
                "beta1: out of range (expected at least 0 and below 1, got -0.5)"));
}

TEST(MakeOptimizerTest, AcceptsTheEdgesOfTheRanges) {
  EXPECT_EQ(Made({.kind = OptimizerKind::kNesterov, .momentum = 0}), absl::OkStatus());
  EXPECT_EQ(Made({.kind = OptimizerKind::kAdam, .beta1 = 0, .beta2 = 0}), absl::OkStatus());
}

TEST(AverageTest, TheMastersBecomeTheMeanGradient) {
  const auto average = MakeOptimizer({.kind = OptimizerKind::kAverage}).value();
  EXPECT_TRUE(average->holds_average());
  EXPECT_EQ(average->slot_count(), 0);
  std::vector<float> masters = {5, -6, std::numeric_limits<float>::max()};
  const Update update = {.learning_rate = 0.5f, .gradient_scale = 0.25f};
  EXPECT_FALSE(average->Apply(update, std::vector<float>{8, -2, 0}, masters, {}));
  EXPECT_EQ(masters, (std::vector<float>{2, -0.5f, 0}));
}

}  // namespace
}  // namespace thinwire
