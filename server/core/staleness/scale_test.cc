#include "server/core/staleness/scale.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(ScaleTest, DividesByTheStaleness) {
  const StalenessSpec spec = {.policy = StalenessPolicy::kScale};
  EXPECT_EQ(StalenessFactor(spec, 0), 1);
  EXPECT_EQ(StalenessFactor(spec, 1), 1);
  EXPECT_EQ(StalenessFactor(spec, 2), 0.5);
  EXPECT_EQ(StalenessFactor(spec, 8), 0.125);
  EXPECT_GT(StalenessFactor(spec, ~uint64_t{0}), 0);
}

TEST(ScaleTest, OtherPoliciesChangeNothing) {
  for (const StalenessPolicy policy :
       {StalenessPolicy::kNone, StalenessPolicy::kDrop, StalenessPolicy::kDcasgd}) {
    EXPECT_EQ(StalenessFactor({.policy = policy}, 4), 1);
  }
}

}  // namespace
}  // namespace thinwire
