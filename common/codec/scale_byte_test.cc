#include "common/codec/scale_byte.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(ScaleByteTest, IsTheSmallestPowerOfTwoThatHoldsTheLargestValue) {
  for (int exponent = -110; exponent < 126; ++exponent) {
    for (const float mantissa : {1.0f, 1.3f, 1.75f, std::nextafterf(1.75f, 2), 1.999f}) {
      const float largest = std::ldexp(mantissa, exponent);
      const float unit = UnitOfScaleByte(ScaleByteFor(largest));
      ASSERT_GE(448.0 * unit, largest);
      ASSERT_LT(448.0 * unit / 2, largest);
    }
  }
}

TEST(ScaleByteTest, StaysWithinItsLimitsForAnyFloat) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(ScaleByteFor(0.0f), kSmallestScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::denorm_min()), kSmallestScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::max()), kLargestScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::infinity()), kLargestScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::quiet_NaN()), kLargestScaleByte);
}

TEST(ScaleByteTest, EveryUnitItsReciprocalAndItsLargestValueAreOrdinaryFloats) {
  for (int byte = kSmallestScaleByte; byte <= kLargestScaleByte; ++byte) {
    const float unit = UnitOfScaleByte(static_cast<uint8_t>(byte));
    ASSERT_EQ(unit, std::ldexp(1.0f, byte - 127));
    ASSERT_TRUE(std::isnormal(1 / unit)) << byte;
    ASSERT_TRUE(std::isfinite(448 * unit)) << byte;
  }
}

}  // namespace
}  // namespace thinwire
