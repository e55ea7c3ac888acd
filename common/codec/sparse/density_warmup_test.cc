#include "common/codec/sparse/density_warmup.h"

#include <gtest/gtest.h>

#include <cmath>

namespace thinwire {
namespace {

TEST(DensityWarmupTest, APartOfZeroMeansNoWarmup) {
  for (const double progress : {0.0, 0.5, 1.0})
    EXPECT_EQ(DensityWarmup().At(progress, 0.001), 0.001);
}

TEST(DensityWarmupTest, TheDensityFallsByTheSameFactorUntilItReachesTheLast) {
  const DensityWarmup warmup = {.part = 0.5, .first = 0.1};
  EXPECT_EQ(warmup.At(0, 0.001), 0.1);
  EXPECT_NEAR(warmup.At(0.25, 0.001), 0.01, 1e-12);
  EXPECT_NEAR(warmup.At(0.3, 0.001) / warmup.At(0.2, 0.001), std::pow(0.01, 0.2), 1e-9);
  EXPECT_EQ(warmup.At(0.5, 0.001), 0.001);
  EXPECT_EQ(warmup.At(1, 0.001), 0.001);
}

TEST(DensityWarmupTest, TheDensityMayRise) {
  const DensityWarmup warmup = {.part = 1, .first = 0.01};
  EXPECT_EQ(warmup.At(0, 1), 0.01);
  EXPECT_NEAR(warmup.At(0.5, 1), 0.1, 1e-12);
}

TEST(DensityWarmupTest, EqualDensitiesStayConstant) {
  for (int step = 0; step < 8; ++step) {
    EXPECT_EQ((DensityWarmup{.part = 1, .first = 1}).At(step / 7.0, 1), 1);
  }
}

}  // namespace
}  // namespace thinwire
