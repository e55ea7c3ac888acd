#include "kernels/update/update_average.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

constexpr float kPart = 0.3f;

// The averages take the place of the masters, and the values that of the sum.
const UpdateCase kAverage = {
    .kernel =
        [](auto values, auto averages, auto) {
          UpdateAverage(kPart, values, averages);
          return false;
        },
    .exact = [](double x, double& a, std::span<double>) { a += double{kPart} * (x - a); },
    .saturates = false};

TEST(UpdateAverageTest, EqualsTheFormulaInDouble) { ExpectMatchesTheExactLoop(kAverage); }

TEST(UpdateAverageTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(kAverage);
}

TEST(UpdateAverageTest, AveragesOfTheLargestFloatsStayFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::array<float, 4> values = {kMax, kMax, -kMax, -kMax};
  for (const float part : {1e-16f, 0.5f, 0.9f}) {
    std::array<float, 4> averages = {-kMax, kMax, kMax, kMax / 3};
    UpdateAverage(part, values, averages);
    for (const float average : averages) EXPECT_TRUE(std::isfinite(average)) << part;
    EXPECT_EQ(averages[1], kMax);
  }
}

}  // namespace
}  // namespace thinwire::kernels
