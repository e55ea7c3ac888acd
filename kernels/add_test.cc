#include "kernels/add.h"

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

TEST(AddTest, EachValueIsAddedOrTurned) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (size_t count = 0; count < 100; ++count) {
      const std::vector<float> values = Values(count, random), before = Values(count, random);
      std::vector<float> sum = before, negated(count);
      Add(values, sum);
      Negate(values, negated);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(sum[i], before[i] + values[i]);
        ASSERT_EQ(negated[i], -values[i]);
      }
    }
  });
}

}  // namespace
}  // namespace thinwire::kernels
