#include "server/core/optimizer/optimizer.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace thinwire
