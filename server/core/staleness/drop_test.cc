#include "server/core/staleness/drop.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(DropTest, RefusesGradientsAboveTheBound) {
  const StalenessSpec spec = {.policy = StalenessPolicy::kDrop, .bound = 3};
  EXPECT_FALSE(IsTooStale(spec, 0));
  EXPECT_FALSE(IsTooStale(spec, 3));
  EXPECT_TRUE(IsTooStale(spec, 4));
  EXPECT_TRUE(IsTooStale(spec, ~uint64_t{0}));
}

TEST(DropTest, OtherPoliciesRefuseNothing) {
  for (const StalenessPolicy policy :
       {StalenessPolicy::kNone, StalenessPolicy::kScale, StalenessPolicy::kDcasgd}) {
    EXPECT_FALSE(IsTooStale({.policy = policy, .bound = 3}, 4));
  }
}

}  // namespace
}  // namespace thinwire
