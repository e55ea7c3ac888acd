#include "kernels/reductions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
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

// Returns array lengths: all below 100, and some close to multiples of a run (4096 values).
std::vector<size_t> Counts() {
  std::vector<size_t> counts(100);
  std::iota(counts.begin(), counts.end(), size_t{0});
  for (const size_t many : {2047, 2048, 2049, 4095, 4096, 4097, 5000, 8192, 70'000})
    counts.push_back(many);
  return counts;
}

// Returns the sum of term(i) for all i < COUNT, computed as 16 partial sums.
template <typename Term>
double SumInParts(size_t count, const Term& term) {
  double parts[16] = {}, sum = 0;
  for (size_t i = 0; i < count; ++i) parts[i % 16] += term(i);
  for (const double part : parts) sum += part;
  return sum;
}

double SumInRuns(const std::vector<float>& values, bool negative) {
  return SumInParts((values.size() + 4095) / 4096, [&](size_t run) {
    const size_t first = run * 4096;
    return SumInParts(std::min<size_t>(4096, values.size() - first), [&](size_t i) {
      const float value = values[first + i];
      return std::signbit(value) == negative ? value : 0.0;
    });
  });
}

TEST(SignSumsTest, SumsInTheDocumentedOrder) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (size_t count : Counts()) {
      std::vector<float> values = Values(count, random);
      if (count > 3) values[3] = -0.0f;
      const SignSums sums = SumBySign(values);
      ASSERT_EQ(sums.positive, SumInRuns(values, false));
      ASSERT_EQ(sums.negative, SumInRuns(values, true));
      ASSERT_EQ(sums.negative_count,
                std::ranges::count_if(values, [](float value) { return std::signbit(value); }));
    }
  });
}

TEST(SumOfSquaresTest, SumsInTheDocumentedOrder) {
  OnEveryTarget([] {
    std::mt19937 random(5);
    for (const size_t count : Counts()) {
      const std::vector<float> values = Values(count, random);
      for (const float scale : {1.0f, 0.3f}) {
        const double expected = SumInParts((count + 4095) / 4096, [&](size_t run) {
          const size_t first = run * 4096;
          return SumInParts(std::min<size_t>(4096, count - first), [&](size_t i) {
            const double scaled = scale * values[first + i];
            return scaled * scaled;
          });
        });
        ASSERT_EQ(SumOfSquares(values, scale), expected) << count << " values";
      }
    }
  });
}

TEST(SumOfSquaresTest, SquaresOfTheLargestValuesAreFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<float> values(1000, -kMax);
  EXPECT_NEAR(SumOfSquares(values) / (double{kMax} * kMax), 1000, 1e-9);
}

TEST(SignSumsTest, AddAndSumEqualsAddingFirst) {
  OnEveryTarget([] {
    std::mt19937 random(3);
    for (size_t count : Counts()) {
      const std::vector<float> gradient = Values(count, random);
      std::vector<float> summed = Values(count, random), ranged = summed, want = summed;
      for (size_t i = 0; i < count; ++i) want[i] += gradient[i];
      const SignSums sums = AddAndSumBySign(gradient, summed);
      const Range range = AddAndRangeWithZero(gradient, ranged);
      ASSERT_EQ(summed, want);
      ASSERT_EQ(ranged, want);
      ASSERT_EQ(sums.positive, SumBySign(want).positive);
      ASSERT_EQ(sums.negative, SumBySign(want).negative);
      ASSERT_EQ(sums.negative_count, SumBySign(want).negative_count);
      ASSERT_EQ(range.least, RangeWithZero(want).least);
      ASSERT_EQ(range.most, RangeWithZero(want).most);
    }
  });
}

TEST(SignSumsTest, RangeIncludesZeroAndIgnoresNans) {
  OnEveryTarget([] {
    std::mt19937 random(2);
    for (size_t count = 0; count < 100; ++count) {
      std::vector<float> values = Values(count, random);
      float least = 0, most = 0;
      for (const float value : values) {
        least = std::min(least, value);
        most = std::max(most, value);
      }
      values.insert(values.begin() + static_cast<std::ptrdiff_t>(count / 2),
                    std::numeric_limits<float>::quiet_NaN());
      ASSERT_EQ(RangeWithZero(values).least, least);
      ASSERT_EQ(RangeWithZero(values).most, most);
    }
    EXPECT_EQ(RangeWithZero(std::vector<float>(40, 3.0f)).least, 0);
    EXPECT_EQ(RangeWithZero(std::vector<float>(40, -3.0f)).most, 0);
  });
}

std::vector<float> Values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 999) - 500, -9);
  return values;
}

TEST(MagnitudeTest, EqualsASimpleLoop) {
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

TEST(MagnitudeTest, ANanIsLargerThanInfinity) {
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
