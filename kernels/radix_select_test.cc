#include "kernels/radix_select.h"

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire::kernels {
namespace {

KthValue BySorting(std::vector<uint32_t> values, size_t k) {
  std::ranges::sort(values, std::greater());
  const uint32_t value = values[k - 1];
  return {.value = value,
          .above_count = static_cast<size_t>(
              std::ranges::count_if(values, [&](uint32_t other) { return other > value; }))};
}

void ExpectEveryKthOf(const std::vector<uint32_t>& values) {
  for (size_t k = 1; k <= values.size(); ++k) {
    std::vector<uint32_t> scratch = values;
    const KthValue got = KthLargest(scratch, k), want = BySorting(values, k);
    ASSERT_EQ(got.value, want.value) << "k = " << k << " of " << values.size();
    ASSERT_EQ(got.above_count, want.above_count) << "k = " << k << " of " << values.size();
  }
}

TEST(RadixSelectTest, IsTheKthOfASort) {
  std::mt19937 random(3);
  for (size_t count = 1; count < 60; ++count) {
    std::vector<uint32_t> values(count);
    for (uint32_t& value : values) value = random() >> (1 + random() % 31);
    ExpectEveryKthOf(values);
  }
}

TEST(RadixSelectTest, EqualValuesCountOnce) {
  ExpectEveryKthOf(std::vector<uint32_t>(50, 0x3F800000));
  ExpectEveryKthOf({7, 7, 9, 9, 9, 1, 7, 0, 0x7FFFFFFF, 0x7FFFFFFF});
}

TEST(RadixSelectTest, DigitsOfEveryLevelDecide) {
  ExpectEveryKthOf({0x3F800000, 0x3F800001, 0x3F800400, 0x3F900000, 0x40000000, 0x3F8003FF});
}

}  // namespace
}  // namespace thinwire::kernels
