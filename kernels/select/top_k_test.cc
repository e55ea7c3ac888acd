#include "kernels/select/top_k.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

// Returns the indices of the k largest values, found by sorting the keys that top_k.h defines.
std::vector<uint32_t> BySorting(const std::vector<float>& values, size_t k) {
  std::vector<uint64_t> keys(values.size());
  for (uint32_t i = 0; i < values.size(); ++i) {
    keys[i] = uint64_t{std::bit_cast<uint32_t>(std::abs(values[i]))} << 32 | ~i;
  }
  std::ranges::sort(keys, std::greater());
  std::vector<uint32_t> indices(k);
  for (size_t j = 0; j < k; ++j) indices[j] = ~static_cast<uint32_t>(keys[j]);
  std::ranges::sort(indices);
  return indices;
}

std::vector<float> Gauss(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> gauss;
  std::vector<float> values(count);
  for (float& value : values) value = gauss(random);
  return values;
}

// The result of a selection: the selected indices and values.
struct Top {
  explicit Top(size_t k) : indices(k), values(k) {}

  // Expects that `indices` equals WANT, and that `values` contains the elements of ALL at these
  // indices. ALL is the array from which the values were selected.
  void Expect(const std::vector<uint32_t>& want, const std::vector<float>& all) const {
    ASSERT_EQ(indices, want) << indices.size() << " of " << all.size();
    for (size_t j = 0; j < indices.size(); ++j) {
      ASSERT_EQ(std::bit_cast<uint32_t>(values[j]), std::bit_cast<uint32_t>(all[indices[j]]));
    }
  }
  IndexedValues all() { return {indices, values}; }

  std::vector<uint32_t> indices;
  std::vector<float> values;
};

// Expects the correct selection for several thresholds, including thresholds that no earlier
// selection would predict.
void ExpectTopOf(const std::vector<float>& values, size_t k) {
  const std::vector<uint32_t> want = BySorting(values, k);
  for (const uint32_t last : {0u, 1u, 0x3F000000u, 0x3FC00000u, 0x7F800000u, ~0u}) {
    Top top(k);
    uint32_t threshold = last;
    SelectTopK(values, top.all(), threshold);
    top.Expect(want, values);
  }
}

TEST(TopKTest, EqualsTheTopOfASort) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 70; ++count) {
      const std::vector<float> values = Gauss(count, count);
      for (size_t k = 0; k <= count; ++k) ExpectTopOf(values, k);
    }
    const std::vector<float> values = Gauss(100'000, 4);
    for (const size_t k : {1, 10, 100, 1000, 10'000, 50'000, 99'999, 100'000}) {
      ExpectTopOf(values, k);
    }
  });
}

TEST(TopKTest, PrefersTheLowerIndexAmongEqualMagnitudes) {
  std::vector<float> values(30'000, 1.0f);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = -1.0f;
  for (const size_t k : {1, 2, 777, 29'999}) {
    Top top(k);
    uint32_t threshold = 0;
    SelectTopK(values, top.all(), threshold);
    for (uint32_t j = 0; j < k; ++j) ASSERT_EQ(top.indices[j], j);
  }
  for (float& value : values)
    value = std::round(2 * value * static_cast<float>(&value - &values[0]) / 30'000);
  ExpectTopOf(values, 9'000);
}

TEST(TopKTest, SelectsZerosIfFewerThanKValuesAreNonzero) {
  std::vector<float> values(50'000, 0.0f);
  values[49'000] = 1.0f;
  values[7] = -2.0f;
  ExpectTopOf(values, 500);
}

// SelectTopK() estimates the threshold from a sample of the array: evenly spaced groups of 16
// adjacent values. The test first enlarges values outside the sample, so that the estimate is too
// low. It then enlarges the sampled values, so that the estimate is too high. Finally it makes the
// sampled values tiny, so that the estimate is too low again.
TEST(TopKTest, SelectsCorrectlyAfterAMisleadingSample) {
  std::vector<float> values = Gauss(1'000'000, 5);
  for (size_t i = 20; i < 3900; ++i) values[i] *= 1000;
  ExpectTopOf(values, 1000);
  for (size_t run = 0; run < 256; ++run) {
    const size_t first = (values.size() - 16) * run / 255;
    for (size_t i = first; i < first + 16; ++i) values[i] *= 1e6f;
  }
  ExpectTopOf(values, 10'000);
  for (size_t run = 0; run < 256; ++run) {
    const size_t first = (values.size() - 16) * run / 255;
    for (size_t i = first; i < first + 16; ++i) values[i] = 1e-6f;
  }
  ExpectTopOf(values, 10'000);
}

TEST(TopKTest, AddsTheGradientBeforeSelecting) {
  OnEveryTarget([] {
    for (const size_t count : {5, 1000, 80'001}) {
      for (const uint32_t last : {0u, 1u, 0x40000000u, 0x7F800000u}) {
        const std::vector<float> gradient = Gauss(count, 6);
        std::vector<float> values = Gauss(count, 7), sums = values;
        for (size_t i = 0; i < count; ++i) sums[i] += gradient[i];
        Top top(1 + count / 100);
        uint32_t threshold = last;
        AddAndSelectTopK(gradient, values, top.all(), threshold);
        ASSERT_EQ(values, sums);
        top.Expect(BySorting(sums, top.indices.size()), sums);
      }
    }
  });
}

TEST(TopKTest, SelectingNoneStillAddsTheGradient) {
  std::vector<float> values = Gauss(30'000, 8), sums = values;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
  for (const uint32_t last : {0u, 1u}) {
    uint32_t threshold = last;
    std::vector<float> halves = values;
    AddAndSelectTopK(values, halves, {}, threshold);
    EXPECT_EQ(halves, sums);
    SelectTopK(values, {}, threshold);
  }
}

TEST(TopKTest, ThePredictionCollectsFewExtraValues) {
  const std::vector<float> values = Gauss(200'000, 9);
  const size_t k = 500;
  Top top(k);
  uint32_t threshold = 0;
  for (int round = 0; round < 4; ++round) SelectTopK(values, top.all(), threshold);
  const auto reaches = [&](float value) { return MagnitudeBits(value) >= threshold; };
  const auto collected = static_cast<size_t>(std::ranges::count_if(values, reaches));
  EXPECT_GT(collected, k);
  EXPECT_LT(collected, 3 * k);
}

TEST(TopKTest, OrdersNonFiniteAndSubnormalValues) {
  OnEveryTarget([] {
    std::vector<float> values = Gauss(20'000, 10);
    for (float& value : values) value *= 1e-42f;  // makes most values subnormal
    values[3] = INFINITY;
    values[17'000] = -NAN;
    values[9'000] = -INFINITY;
    values[11] = 0.0f;
    for (const size_t k : {1, 2, 3, 4, 700, 19'999, 20'000}) ExpectTopOf(values, k);
  });
}

}  // namespace
}  // namespace thinwire::kernels
