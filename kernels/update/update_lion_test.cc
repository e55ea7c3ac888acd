#include "kernels/update/update_lion.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

UpdateCase CaseOf(const LionStep& step) {
  return {.slot_count = 1,
          .kernel = [step](auto sum, auto masters,
                           auto slots) { return UpdateLion(step, sum, masters, slots[0]); },
          .exact =
              [step](double sum, double& x, std::span<double> slots) {
                const double g = step.gradient_scale * sum;
                const double c = step.beta1 * slots[0] + step.one_minus_beta1 * g;
                const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
                x = step.shrink * x - step.learning_rate * sign;
                slots[0] = step.beta2 * slots[0] + step.one_minus_beta2 * g;
              }};
}

const LionStep kLion = {.gradient_scale = 0.3f,
                        .beta1 = 0.9f,
                        .one_minus_beta1 = 0.1f,
                        .beta2 = 0.99f,
                        .one_minus_beta2 = 0.01f,
                        .learning_rate = 0.1f};
const LionStep kDecaying = {.gradient_scale = 0.3f,
                            .beta1 = 0.5f,
                            .one_minus_beta1 = 0.5f,
                            .beta2 = 0.25f,
                            .one_minus_beta2 = 0.75f,
                            .learning_rate = 0.1f,
                            .shrink = -1.5f};

TEST(UpdateLionTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(CaseOf(kLion));
  ExpectMatchesTheExactLoop(CaseOf(kDecaying));
}

TEST(UpdateLionTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(CaseOf(kLion));
  ExpectTheSameBitsEverywhere(CaseOf(kDecaying));
}

TEST(UpdateLionTest, ADirectionOfZeroDoesNotMoveTheParameter) {
  std::array<float, 3> masters = {1, 2, 3};
  std::array<float, 3> momentum = {0, -0.0f, -1};
  const std::array<float, 3> sum = {0, -0.0f, 9};
  EXPECT_FALSE(UpdateLion({.beta1 = 0.75f, .one_minus_beta1 = 0.25f, .learning_rate = 0.5f}, sum,
                          masters, momentum));
  EXPECT_EQ(masters, (std::array<float, 3>{1, 2, 2.5f}));
}

}  // namespace
}  // namespace thinwire::kernels
