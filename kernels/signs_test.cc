#include "kernels/signs.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

constexpr std::array<float, 2> kEntries = {0.75f, -0.5f};

std::vector<float> Values(size_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 999) - 500, -7);
  if (count > 3) values[count / 2] = -0.0f;
  if (count > 4) values[1] = -std::numeric_limits<float>::infinity();
  return values;
}

// Returns the sign bits of VALUES, followed by a guard byte.
std::vector<std::byte> PlainBits(const std::vector<float>& values) {
  std::vector<std::byte> bits((values.size() + 7) / 8);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::signbit(values[i])) bits[i / 8] |= std::byte{1} << (i % 8);
  }
  bits.push_back(std::byte{0xA5});
  return bits;
}

std::vector<std::byte> Room(size_t count) {
  return std::vector<std::byte>((count + 7) / 8 + 1, std::byte{0xA5});
}

TEST(SignsTest, PackingEqualsASimpleLoop) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (size_t count = 0; count < 150; ++count) {
      const std::vector<float> values = Values(count, random);
      std::vector<std::byte> bits = Room(count);
      PackSigns(values, bits.data());
      ASSERT_EQ(bits, PlainBits(values)) << count;
    }
  });
}

TEST(SignsTest, SubtractingLeavesTheDifferenceToTheEntries) {
  OnEveryTarget([] {
    std::mt19937 random(2);
    for (size_t count = 0; count < 150; ++count) {
      const std::vector<float> values = Values(count, random);
      std::vector<float> left = values;
      std::vector<std::byte> bits = Room(count);
      PackSignsSubtract(kEntries, left, bits.data());
      ASSERT_EQ(bits, PlainBits(values)) << count;
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(left[i], values[i] - kEntries[std::signbit(values[i])]);
      }
    }
  });
}

TEST(SignsTest, UnpackingEqualsASimpleLoop) {
  OnEveryTarget([] {
    std::mt19937 random(3);
    for (size_t count = 0; count < 150; ++count) {
      const std::vector<float> values = Values(count, random);
      const std::vector<std::byte> bits = PlainBits(values);
      std::vector<float> out(count), sum = Values(count, random);
      const std::vector<float> before = sum;
      UnpackSigns(bits.data(), kEntries, out);
      UnpackSignsAdd(bits.data(), kEntries, sum);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[i], kEntries[std::signbit(values[i])]);
        ASSERT_EQ(sum[i], before[i] + out[i]);
      }
    }
  });
}

}  // namespace
}  // namespace thinwire::kernels
