#include "kernels/codes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

std::vector<float> Values(size_t count, std::mt19937& random) {
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 999) - 500, -7);
  return values;
}

uint8_t ExpectedCode(float value, const std::vector<float>& thresholds, int bits) {
  const auto reached =
      std::ranges::count_if(thresholds, [&](float t) { return std::abs(value) >= t; });
  return static_cast<uint8_t>(reached | (std::signbit(value) ? 1 << (bits - 1) : 0));
}

TEST(CodesTest, CodesOfMagnitudesCountThresholds) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (int bits = 1; bits <= 8; ++bits) {
      std::vector<float> thresholds = Values((1u << (bits - 1)) - 1, random);
      for (float& threshold : thresholds) threshold = std::abs(threshold);
      std::ranges::sort(thresholds);
      for (size_t count = 0; count < 70; ++count) {
        std::vector<float> values = Values(count, random);
        if (count > 3 && bits > 1) values[count / 2] = -thresholds[0];
        if (count > 5) values[1] = -0.0f, values[2] = std::numeric_limits<float>::infinity();
        if (count > 6) values[3] = std::numeric_limits<float>::quiet_NaN();
        std::vector<uint8_t> codes(count);
        CodesOfMagnitudes(values, thresholds, bits, codes);
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(codes[i], ExpectedCode(values[i], thresholds, bits))
              << values[i] << " " << bits;
        }
      }
    }
  });
}

constexpr float kSpecialValues[] = {0.0f,
                                    -0.0f,
                                    std::numeric_limits<float>::quiet_NaN(),
                                    std::numeric_limits<float>::infinity(),
                                    -std::numeric_limits<float>::infinity(),
                                    -1e30f};

TEST(CodesTest, CodesOfStepsEqualASimpleLoop) {
  OnEveryTarget([] {
    std::mt19937 random(3);
    for (size_t count = 0; count < 70; ++count) {
      std::vector<float> values = Values(count, random);
      if (count > 10) std::ranges::copy(kSpecialValues, values.begin() + 2);
      std::vector<uint8_t> codes(count);
      CodesOfSteps(values, 0.03f, 117, codes);
      for (size_t i = 0; i < count; ++i) {
        const float place = values[i] / 0.03f + 117.5f;
        ASSERT_EQ(codes[i], place > 0 ? static_cast<int>(std::min(place, 255.0f)) : 0) << values[i];
      }
    }
  });
}

TEST(CodesTest, CodesOfLevelsEqualASimpleLoop) {
  OnEveryTarget([] {
    std::mt19937 random(4);
    for (const Levels levels : {Levels{3.9f, 7, 4}, {4, 127, 8}, {0, 1, 2}}) {
      for (size_t count = 0; count < 70; ++count) {
        std::vector<float> values = Values(count, random);
        if (count > 10) std::ranges::copy(kSpecialValues, values.begin() + 2);
        std::vector<uint16_t> draws(count);
        for (uint16_t& draw : draws) draw = static_cast<uint16_t>(random());
        std::vector<uint8_t> codes(count);
        CodesOfLevels(values, levels, draws, codes);
        for (size_t i = 0; i < count; ++i) {
          const float place = std::abs(values[i]) / levels.largest * levels.count +
                              static_cast<float>(draws[i]) * 0x1p-16f;
          const int level = place > 0 ? static_cast<int>(std::min(place, levels.count)) : 0;
          ASSERT_EQ(codes[i], level | (std::signbit(values[i]) ? 1 << (levels.bits - 1) : 0));
        }
      }
    }
  });
}

TEST(CodesTest, LookUpsEqualASimpleLoop) {
  OnEveryTarget([] {
    std::mt19937 random(2);
    for (size_t entries = 2; entries <= kLargestTable; entries *= 2) {
      const std::vector<float> table = Values(entries, random);
      for (size_t count = 0; count < 70; ++count) {
        std::vector<uint8_t> codes(count);
        for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % entries);
        std::vector<float> out(count), sum = Values(count, random);
        const std::vector<float> before = sum;
        LookUp(codes, table, out);
        LookUpAdd(codes, table, sum);
        for (size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i], table[codes[i]]);
          ASSERT_EQ(sum[i], before[i] + table[codes[i]]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace thinwire::kernels
