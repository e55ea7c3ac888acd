#include "kernels/select/collect.h"

#include <cmath>
#include <random>
#include <utility>
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

using Entries = std::vector<std::pair<uint32_t, float>>;

Entries ByPlainLoop(const std::vector<float>& values, float smallest) {
  Entries entries;
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) >= smallest) entries.emplace_back(i, values[i]);
  }
  return entries;
}

// Output arrays with space for COUNT values and the padding that the kernels need.
struct Room {
  explicit Room(size_t count) : indices(count + kCollectPadding), values(count + kCollectPadding) {}

  IndexedValues all() { return {indices, values}; }
  Entries First(size_t count) const {
    Entries entries;
    for (size_t j = 0; j < count; ++j) entries.emplace_back(indices[j], values[j]);
    return entries;
  }

  std::vector<uint32_t> indices;
  std::vector<float> values;
};

TEST(CollectTest, CollectsLikeASimpleLoop) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> values = Values(count, count);
      for (const float smallest : {0.0f, 0.5f, 1.0f, 1.5f, 100.0f}) {
        const Entries want = ByPlainLoop(values, smallest);
        Room room(want.size());
        ASSERT_EQ(CollectAtLeast(values, MagnitudeBits(smallest), room.all()), want.size());
        ASSERT_EQ(room.First(want.size()), want);
      }
    }
  });
}

TEST(CollectTest, AddsTheGradientWhileCollecting) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> gradient = Values(count, count);
      std::vector<float> values = Values(count, count + 1000), sums = values;
      for (size_t i = 0; i < count; ++i) sums[i] += gradient[i];
      const Entries want = ByPlainLoop(sums, 1.0f);
      Room room(want.size());
      ASSERT_EQ(AddAndCollectAtLeast(gradient, values, MagnitudeBits(1.0f), room.all()),
                want.size());
      ASSERT_EQ(room.First(want.size()), want);
      ASSERT_EQ(values, sums);
    }
  });
}

TEST(CollectTest, CollectsAmongCandidatesInPlace) {
  OnEveryTarget([] {
    for (size_t count = 0; count < 200; ++count) {
      const std::vector<float> values = Values(count, count);
      Room room(count);
      const auto found = CollectAtLeast(values, MagnitudeBits(0.5f), room.all());
      ASSERT_TRUE(found.has_value());
      const Entries want = ByPlainLoop(values, 1.0f);
      ASSERT_EQ(CollectAtLeast(room.all().First(*found), MagnitudeBits(1.0f), room.all()),
                want.size());
      ASSERT_EQ(room.First(want.size()), want);
    }
  });
}

TEST(CollectTest, ReturnsNulloptWithoutRoomButAddsTheWholeGradient) {
  OnEveryTarget([] {
    const std::vector<float> gradient(1000, 1.0f);
    std::vector<float> values(1000, 1.0f);
    Room room(999);
    EXPECT_EQ(AddAndCollectAtLeast(gradient, values, MagnitudeBits(1.0f), room.all()),
              std::nullopt);
    EXPECT_EQ(values, std::vector<float>(1000, 2.0f));
    EXPECT_EQ(CollectAtLeast(values, MagnitudeBits(1.0f), room.all()), std::nullopt);
  });
}

}  // namespace
}  // namespace thinwire::kernels
