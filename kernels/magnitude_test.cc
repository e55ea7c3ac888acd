#include "kernels/magnitude.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

std::vector<float> Values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 999) - 500, -9);
  return values;
}

TEST(MagnitudeTest, IsTheLargestOfAPlainLoop) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 100; ++count) {
      const auto a = Values(count, 2 * count), b = Values(count, 2 * count + 1);
      float largest = 0, largest_sum = 0;
      for (size_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::abs(a[i]));
        largest_sum = std::max(largest_sum, std::abs(a[i] + b[i]));
      }
      ASSERT_EQ(LargestMagnitude(a), largest) << count;
      ASSERT_EQ(LargestMagnitudeOfSum(a, b), largest_sum) << count;
    }
  });
}

TEST(MagnitudeTest, ANanIsAboveInfinity) {
  OnEveryTarget([] {
    for (size_t at = 0; at < 40; ++at) {
      std::vector<float> values(40, 1.0f);
      values[39 - at] = -INFINITY;
      EXPECT_EQ(LargestMagnitude(values), INFINITY);
      values[at] = NAN;
      EXPECT_TRUE(std::isnan(LargestMagnitude(values)));
    }
  });
}

}  // namespace
}  // namespace thinwire::kernels
