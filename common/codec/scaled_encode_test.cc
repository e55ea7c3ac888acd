#include "common/codec/scaled_encode.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "common/codec/codec_cases.h"
#include "common/codec/scale_byte.h"
#include "gtest/gtest.h"
#include "kernels/convert.h"
#include "kernels/number_format.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

using Format = kernels::Fp8E4m3;
using Bytes = std::vector<std::byte>;

// The scale first, then the codes.
Bytes InTwoPasses(const std::vector<float>& values) {
  Bytes bytes(1 + values.size());
  const uint8_t scale = ScaleByteFor(kernels::LargestMagnitude(values));
  bytes[0] = std::byte{scale};
  kernels::Encode<Format>(values, UnitOfScaleByte(scale), bytes.data() + 1);
  return bytes;
}

// That of the value grows from the first to the last by 2^DOUBLINGS.
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

TEST(ScaledEncodeTest, WritesWhatTwoPassesWrite) {
  for (const std::vector<float>& values : Cases()) {
    Bytes got(1 + values.size());
    EncodeScaled(values, got.data());
    ASSERT_EQ(got, InTwoPasses(values)) << values.size();
  }
}

TEST(ScaledEncodeTest, FeedbackWritesTheSameAndLeavesWhatItLacks) {
  for (const std::vector<float>& gradient : Cases()) {
    std::vector<float> residual = Gauss(gradient.size(), 7), sums = residual;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (i % 3 == 0) residual[i] = sums[i] = 0;
      sums[i] += gradient[i];
    }
    const Bytes want = InTwoPasses(sums);
    Bytes got(want.size());
    EncodeScaledFeedback(gradient, residual, got.data());
    ASSERT_EQ(got, want) << sums.size();
    std::vector<float> sent(sums.size());
    const float unit = UnitOfScaleByte(std::to_integer<uint8_t>(got[0]));
    kernels::Decode<Format>(got.data() + 1, unit, sent);
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(residual[i]), std::bit_cast<uint32_t>(sums[i] - sent[i]))
          << i << ": " << sums[i] << " less " << sent[i] << " left " << residual[i];
    }
  }
}

}  // namespace
}  // namespace thinwire
