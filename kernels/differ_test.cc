#include "kernels/differ.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

std::optional<std::vector<uint32_t>> Different(const std::vector<float>& a,
                                               const std::vector<float>& b, size_t room) {
  std::vector<uint32_t> indices(room + kDifferPadding);
  const std::optional<size_t> count = CollectDifferent(a, b, indices);
  if (!count.has_value()) return std::nullopt;
  indices.resize(*count);
  return indices;
}

TEST(DifferTest, FindsEveryChangedBit) {
  OnEveryTarget([] {
    std::mt19937 bits(7);
    for (size_t n = 0; n < 200; ++n) {
      std::vector<float> a(n);
      for (float& value : a) value = static_cast<float>(bits());
      std::vector<float> b = a;
      std::vector<uint32_t> want;
      for (uint32_t i = 0; i < n; ++i) {
        if (bits() % 5 != 0) continue;
        b[i] = -b[i];
        want.push_back(i);
      }
      EXPECT_EQ(Different(a, b, n), want) << n;
    }
  });
}

TEST(DifferTest, ZerosOfDifferentSignDifferAndEqualNansDoNot) {
  OnEveryTarget([] {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(Different({0.0f, nan, 1}, {-0.0f, nan, 1}, 3), std::vector<uint32_t>{0});
  });
}

TEST(DifferTest, ReturnsNulloptWithoutRoom) {
  OnEveryTarget([] {
    const std::vector<float> a(100, 1), b(100, 2);
    EXPECT_EQ(Different(a, b, 99), std::nullopt);
    EXPECT_EQ(Different(a, b, 100)->size(), 100);
  });
}

}  // namespace
}  // namespace thinwire::kernels
