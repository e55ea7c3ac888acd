#include "kernels/arithmetic.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

std::vector<float> Values(size_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = 0.37f * (static_cast<float>(random() % 999) - 500);
  return values;
}

TEST(ArithmeticTest, AddsAndNegatesEachValue) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> values = Values(count, random), before = Values(count, random);
      std::vector<float> sum = before, negated(count);
      Add(values, sum);
      Negate(values, negated);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(sum[i], before[i] + values[i]);
        ASSERT_EQ(negated[i], -values[i]);
      }
    }
  });
}

using Floats = std::vector<float>;

constexpr float kLargest = std::numeric_limits<float>::max();

Floats Values(size_t count) {
  Floats values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(static_cast<float>(i)) * kLargest;
  return values;
}

TEST(ScaleTest, MultipliesValuesAtAllPositions) {
  OnEveryTarget([] {
    for (const size_t count : {0, 1, 3, 64, 65, 131}) {
      const Floats values = Values(count);
      for (const float factor : {0.5f, 0.3f, 0x1p-24f, 0x1p-149f}) {
        Floats out(count);
        ASSERT_TRUE(ScaleFinite(factor, values, out));
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], factor * values[i]) << i;
      }
    }
  });
}

TEST(ScaleTest, FindsOneNonFiniteValueAnywhere) {
  OnEveryTarget([] {
    Floats out(131);
    for (size_t bad = 0; bad < out.size(); ++bad) {
      for (const float planted : {INFINITY, -INFINITY, NAN}) {
        Floats values = Values(out.size());
        values[bad] = planted;
        ASSERT_FALSE(ScaleFinite(0.5f, values, out)) << bad;
      }
    }
  });
}

TEST(ScaleTest, AnOverflowingProductIsNotFinite) {
  OnEveryTarget([] {
    Floats values(100, kLargest / 2);
    EXPECT_TRUE(ScaleFinite(2, values, values));
    EXPECT_EQ(values, Floats(100, kLargest)) << "in place";
    EXPECT_FALSE(ScaleFinite(2, values, values));
  });
}

TEST(ScaleTest, ANanFactorMakesEveryProductNonFinite) {
  OnEveryTarget([] {
    Floats out(70);
    EXPECT_FALSE(ScaleFinite(NAN, Floats(70, 0), out));
    EXPECT_FALSE(ScaleFinite(INFINITY, Floats(70, 0), out));
  });
}

}  // namespace
}  // namespace thinwire::kernels
