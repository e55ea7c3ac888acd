#include "server/core/update/batch_growth.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

// Returns an estimate with this noise scale after this number of measured rounds.
NoiseEstimate Noise(double scale, uint64_t rounds) {
  return {.variance = scale * 0.5, .squared_gradient = 0.5, .rounds = rounds};
}

TEST(BatchGrowthTest, ABatchDoublesAfterThreeRoundsAboveTheNextBatch) {
  BatchGrowth growth({.largest_batch = 1000});
  EXPECT_FALSE(growth.Doubles({}, 64)) << "nothing is measured yet";
  EXPECT_FALSE(growth.Doubles(Noise(128, 1), 64));
  EXPECT_FALSE(growth.Doubles(Noise(128, 1), 64)) << "the same round";
  EXPECT_FALSE(growth.Doubles(Noise(128, 2), 64));
  EXPECT_TRUE(growth.Doubles(Noise(128, 3), 64));
}

TEST(BatchGrowthTest, ALargerRatioDelaysTheGrowth) {
  BatchGrowth growth({.largest_batch = 1000, .ratio = 4});
  growth.Doubles({}, 64);
  EXPECT_FALSE(growth.Doubles(Noise(511, 3), 64));
  EXPECT_TRUE(growth.Doubles(Noise(512, 6), 64));
}

TEST(BatchGrowthTest, ANoiseScaleBelowTheNextBatchBeginsTheCountAnew) {
  BatchGrowth growth({.largest_batch = 1000});
  growth.Doubles({}, 64);
  growth.Doubles(Noise(200, 2), 64);
  EXPECT_FALSE(growth.Doubles(Noise(127, 3), 64));
  EXPECT_FALSE(growth.Doubles(Noise(200, 5), 64));
  EXPECT_TRUE(growth.Doubles(Noise(200, 6), 64));
}

TEST(BatchGrowthTest, AGrownBatchWaitsForRoundsOfItsOwn) {
  BatchGrowth growth({.largest_batch = 1000});
  growth.Doubles({}, 64);
  ASSERT_TRUE(growth.Doubles(Noise(500, 3), 64));
  EXPECT_FALSE(growth.Doubles(Noise(500, 4), 128));
  EXPECT_FALSE(growth.Doubles(Noise(500, 6), 128));
  EXPECT_TRUE(growth.Doubles(Noise(500, 7), 128));
}

TEST(BatchGrowthTest, NoBatchExceedsTheLargest) {
  BatchGrowth growth({.largest_batch = 255});
  growth.Doubles({}, 64);
  EXPECT_TRUE(growth.Doubles(Noise(1e6, 3), 64));
  growth.Doubles(Noise(1e6, 4), 128);
  EXPECT_FALSE(growth.Doubles(Noise(1e6, 100), 128));
}

TEST(BatchGrowthTest, AGradientBelowItsNoiseCountsAsALargeNoiseScale) {
  BatchGrowth growth({.largest_batch = 1000});
  growth.Doubles({}, 64);
  EXPECT_TRUE(growth.Doubles({.variance = 1, .squared_gradient = -1e-9, .rounds = 3}, 64));
  growth.Doubles({}, 128);
  EXPECT_FALSE(growth.Doubles({.variance = -1, .squared_gradient = -1, .rounds = 9}, 128))
      << "a variance that is not positive is no measurement";
}

TEST(BatchGrowthTest, ARestartedServerMeasuresAnew) {
  BatchGrowth growth({.largest_batch = 1000});
  growth.Doubles(Noise(1, 50), 64);
  EXPECT_FALSE(growth.Doubles(Noise(500, 1), 64));
  EXPECT_FALSE(growth.Doubles(Noise(500, 3), 64));
  EXPECT_TRUE(growth.Doubles(Noise(500, 4), 64));
}

}  // namespace
}  // namespace thinwire
