#include "common/codec/dense/scaled_encode.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "common/codec/codec_cases.h"
#include "common/codec/dense/scaled_encode.h"
#include "gtest/gtest.h"
#include "kernels/convert.h"
#include "kernels/number_format.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

using Format = kernels::Fp8E4m3;
using Bytes = std::vector<std::byte>;

// The reference encoder: makes one pass over the values for the scale and one for the codes.
Bytes EncodedInTwoPasses(const std::vector<float>& values) {
  Bytes bytes(1 + values.size());
  const uint8_t scale = ScaleByteFor(kernels::LargestMagnitude(values));
  bytes[0] = std::byte{scale};
  kernels::Encode<Format>(values, UnitOfScaleByte(scale), bytes.data() + 1);
  return bytes;
}

// Returns normally distributed values. Their standard deviation grows by a factor of 2^DOUBLINGS
// from the first to the last value.
std::vector<float> Growing(size_t count, double doublings, uint32_t seed) {
  std::vector<float> values = Gauss(count, seed);
  for (size_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(count);
    values[i] *= static_cast<float>(std::exp2(doublings * part));
  }
  return values;
}

std::vector<std::vector<float>> Cases() {
  std::vector<std::vector<float>> cases = {{}, {0}, {-3}, std::vector<float>(5000, 0.0f)};
  for (const size_t count : {1, 2047, 2048, 2049, 10'000}) {
    for (const double doublings : {-100, -3, 0, 3, 60, 140}) {
      cases.push_back(Growing(count, doublings, static_cast<uint32_t>(count)));
      for (float& value : cases.back()) value *= 1e-8f;
    }
  }
  cases.push_back(Gauss(9000, 5));
  cases.back()[8999] = std::numeric_limits<float>::max();
  cases.push_back(Gauss(9000, 6));
  for (float& value : cases.back()) value *= 1e-42f;
  cases.back()[8000] = -1e-30f;
  return cases;
}

TEST(ScaledEncodeTest, WritesTheBytesOfTwoPasses) {
  for (const std::vector<float>& values : Cases()) {
    Bytes got(1 + values.size());
    EncodeScaled(values, got.data());
    ASSERT_EQ(got, EncodedInTwoPasses(values)) << values.size();
  }
}

TEST(ScaledEncodeTest, FeedbackWritesTheBytesOfTwoPassesAndLeavesTheEncodingError) {
  for (const std::vector<float>& gradient : Cases()) {
    std::vector<float> residual = Gauss(gradient.size(), 7), sums = residual;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (i % 3 == 0) residual[i] = sums[i] = 0;
      sums[i] += gradient[i];
    }
    const Bytes want = EncodedInTwoPasses(sums);
    Bytes got(want.size());
    EncodeScaledFeedback(gradient, residual, got.data());
    ASSERT_EQ(got, want) << sums.size();
    std::vector<float> decoded(sums.size());
    const float unit = UnitOfScaleByte(std::to_integer<uint8_t>(got[0]));
    kernels::Decode<Format>(got.data() + 1, unit, decoded);
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(residual[i]), std::bit_cast<uint32_t>(sums[i] - decoded[i]))
          << i << ": sum " << sums[i] << ", decoded " << decoded[i] << ", residual " << residual[i];
    }
  }
}

TEST(ScaleByteTest, TheUnitIsTheSmallestPowerOfTwoThatReachesTheLargestValue) {
  for (int exponent = -110; exponent < 126; ++exponent) {
    for (const float mantissa : {1.0f, 1.3f, 1.75f, std::nextafterf(1.75f, 2), 1.999f}) {
      const float largest = std::ldexp(mantissa, exponent);
      const float unit = UnitOfScaleByte(ScaleByteFor(largest));
      ASSERT_GE(448.0 * unit, largest);
      ASSERT_LT(448.0 * unit / 2, largest);
    }
  }
}

TEST(ScaleByteTest, TheScaleByteOfEveryFloatIsInRange) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(ScaleByteFor(0.0f), kMinScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::denorm_min()), kMinScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::max()), kMaxScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::infinity()), kMaxScaleByte);
  EXPECT_EQ(ScaleByteFor(Limits::quiet_NaN()), kMaxScaleByte);
}

TEST(ScaleByteTest, EveryUnitItsReciprocalAndItsLargestValueAreNormalFloats) {
  for (int byte = kMinScaleByte; byte <= kMaxScaleByte; ++byte) {
    const float unit = UnitOfScaleByte(static_cast<uint8_t>(byte));
    ASSERT_EQ(unit, std::ldexp(1.0f, byte - 127));
    ASSERT_TRUE(std::isnormal(1 / unit)) << byte;
    ASSERT_TRUE(std::isfinite(448 * unit)) << byte;
  }
}

}  // namespace
}  // namespace thinwire
