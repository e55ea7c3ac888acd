#include "kernels/select/kth_largest.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

KthMagnitude BySorting(std::vector<uint32_t> magnitudes, size_t k) {
  std::ranges::sort(magnitudes, std::greater());
  const uint32_t bits = magnitudes[k - 1];
  return {.bits = bits,
          .above_count = static_cast<size_t>(
              std::ranges::count_if(magnitudes, [&](uint32_t other) { return other > bits; }))};
}

// Expects the correct result for every k. The test array has the magnitudes MAGNITUDES, given as
// float bits; every second value is negative.
void ExpectEveryKthOf(const std::vector<uint32_t>& magnitudes) {
  std::vector<float> values(magnitudes.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::bit_cast<float>(magnitudes[i] | (i % 2 == 0 ? 0 : 0x80000000));
  }
  const uint32_t smallest = *std::ranges::min_element(magnitudes);
  OnEveryTarget([&] {
    for (size_t k = 1; k <= values.size(); ++k) {
      const KthMagnitude want = BySorting(magnitudes, k);
      for (const uint32_t from : {0u, smallest / 2, smallest}) {
        const KthMagnitude got = KthLargest(values, k, from);
        ASSERT_EQ(got.bits, want.bits) << "k = " << k << " of " << values.size();
        ASSERT_EQ(got.above_count, want.above_count) << "k = " << k << " of " << values.size();
      }
    }
  });
}

TEST(KthLargestTest, EqualsTheKthOfASort) {
  std::mt19937 random(3);
  for (size_t count = 1; count < 60; ++count) {
    std::vector<uint32_t> magnitudes(count);
    for (uint32_t& magnitude : magnitudes) magnitude = random() >> (1 + random() % 31);
    ExpectEveryKthOf(magnitudes);
  }
}

TEST(KthLargestTest, CountsEqualMagnitudesSeparately) {
  ExpectEveryKthOf(std::vector<uint32_t>(50, 0x3F800000));
  ExpectEveryKthOf({7, 7, 9, 9, 9, 1, 7, 0, 0x7FFFFFFF, 0x7FFFFFFF});
}

TEST(KthLargestTest, DistinguishesTheLastBit) {
  ExpectEveryKthOf({0x3F800000, 0x3F800001, 0x3F800400, 0x3F900000, 0x40000000, 0x3F8003FF});
}

TEST(KthLargestTest, OrdersNansAboveInfinityAndSubnormalsAboveZero) {
  ExpectEveryKthOf({0x7FC00000, 0x7F800000, 0x7F800001, 0x7F7FFFFF, 1, 0, 0x007FFFFF});
}

}  // namespace
}  // namespace thinwire::kernels
