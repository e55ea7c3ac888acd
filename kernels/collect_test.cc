#include "kernels/collect.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

std::vector<float> Values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 99) - 50, -5);
  return values;
}

std::vector<uint32_t> ByPlainLoop(const std::vector<float>& values, float smallest) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) >= smallest) indices.push_back(i);
  }
  return indices;
}

TEST(CollectTest, FindsWhatAPlainLoopFinds) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> values = Values(count, count);
      for (const float smallest : {0.0f, 0.5f, 1.0f, 1.5f, 100.0f}) {
        const auto want = ByPlainLoop(values, smallest);
        std::vector<uint32_t> got(want.size() + kCollectPadding);
        const auto found = CollectAtLeast(values, MagnitudeBits(smallest), got);
        ASSERT_EQ(found, want.size());
        got.resize(want.size());
        ASSERT_EQ(got, want);
      }
    }
  });
}

TEST(CollectTest, AddsWhileItCollects) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> gradient = Values(count, count);
      std::vector<float> values = Values(count, count + 1000), sums = values;
      for (size_t i = 0; i < count; ++i) sums[i] += gradient[i];
      const auto want = ByPlainLoop(sums, 1.0f);
      std::vector<uint32_t> got(want.size() + kCollectPadding);
      ASSERT_EQ(AddAndCollectAtLeast(gradient, values, MagnitudeBits(1.0f), got), want.size());
      got.resize(want.size());
      ASSERT_EQ(got, want);
      ASSERT_EQ(values, sums);
    }
  });
}

TEST(CollectTest, WithoutRoomItSaysSoAndStillAddsEverything) {
  OnEveryTarget([] {
    const std::vector<float> gradient(1000, 1.0f);
    std::vector<float> values(1000, 1.0f);
    std::vector<uint32_t> indices(999 + kCollectPadding, 0);
    EXPECT_EQ(AddAndCollectAtLeast(gradient, values, MagnitudeBits(1.0f), indices), std::nullopt);
    EXPECT_EQ(values, std::vector<float>(1000, 2.0f));
    EXPECT_EQ(CollectAtLeast(values, MagnitudeBits(1.0f), indices), std::nullopt);
  });
}

}  // namespace
}  // namespace thinwire::kernels
