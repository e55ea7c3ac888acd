#include "kernels/mix_bits.h"

#include <bit>

#include "gtest/gtest.h"

namespace thinwire::kernels {
namespace {

// The expected numbers are the first outputs of the published SplitMix64 implementation for seed 0.
TEST(MixBitsTest, GivesTheNumbersOfSplitMix64) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  EXPECT_EQ(MixBits(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(MixBits(kStep), 0x6E789E6AA1B965F4u);
  EXPECT_EQ(MixBits(2 * kStep), 0x06C45D188009454Fu);
}

TEST(MixBitsTest, OneBitOfTheInputFlipsHalfOfTheOutput) {
  int flipped = 0;
  for (uint64_t x = 0; x < 1000; ++x) {
    flipped += std::popcount(MixBits(x) ^ MixBits(x ^ (uint64_t{1} << x % 64)));
  }
  EXPECT_NEAR(flipped / 1000.0, 32, 0.5);
}

}  // namespace
}  // namespace thinwire::kernels
