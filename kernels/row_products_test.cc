#include "kernels/row_products.h"

#include <array>
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

float PlainDot(const std::vector<float>& a, const std::vector<float>& b) {
  std::array<float, kDotParts> parts = {};
  for (size_t i = 0; i < a.size(); ++i) {
    const float product = a[i] * b[i];
    parts[i % kDotParts] += product;
  }
  float sum = 0;
  for (const float part : parts) sum += part;
  return sum;
}

TEST(RowProductsTest, DotEqualsThePlainLoopOnEveryTarget) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (const size_t count : {0, 1, 3, 15, 16, 17, 31, 32, 33, 100, 784, 1000}) {
      const std::vector<float> a = Values(count, random), b = Values(count, random);
      ASSERT_EQ(Dot(a, b), PlainDot(a, b)) << count;
    }
  });
}

TEST(RowProductsTest, AddScaledRoundsTheProductAndTheSum) {
  OnEveryTarget([] {
    std::mt19937 random(2);
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> values = Values(count, random), before = Values(count, random);
      std::vector<float> sum = before;
      AddScaled(-0.3f, values, sum);
      for (size_t i = 0; i < count; ++i) {
        const float product = -0.3f * values[i];
        ASSERT_EQ(sum[i], before[i] + product) << i;
      }
    }
  });
}

TEST(RowProductsTest, TheReciprocalUnitIsANormalPowerOfTwo) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(ReciprocalUnit(1), 1);
  EXPECT_EQ(ReciprocalUnit(1.99f), 1);
  EXPECT_EQ(ReciprocalUnit(2), 0.5f);
  EXPECT_EQ(ReciprocalUnit(0.3f), 4);
  EXPECT_EQ(ReciprocalUnit(0x1p126f), 0x1p-126f);
  EXPECT_EQ(ReciprocalUnit(Limits::max()), 0x1p-126f);
  EXPECT_EQ(ReciprocalUnit(0x1p-126f), 0x1p126f);
  EXPECT_EQ(ReciprocalUnit(Limits::denorm_min()), 0x1p126f);
  for (const float other : {0.0f, Limits::infinity(), Limits::quiet_NaN()}) {
    EXPECT_EQ(ReciprocalUnit(other), 1);
  }
}

}  // namespace
}  // namespace thinwire::kernels
