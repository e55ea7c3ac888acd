#include "kernels/update/update_sign_sgd.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/on_every_target.h"
#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

UpdateCase CaseOf(const SignSgdStep& step) {
  return {
      .slot_count = 0,
      .kernel = [step](auto sum, auto masters, auto) { return UpdateSignSgd(step, sum, masters); },
      .exact = [step](
                   double sum, double& x,
                   auto) { x = step.shrink * x - step.learning_rate * ((sum > 0) - (sum < 0)); }};
}

const SignSgdStep kPlain = {.gradient_scale = 0.3f, .learning_rate = 0.1f};
const SignSgdStep kShrinking = {.gradient_scale = 0.3f, .learning_rate = 0.1f, .shrink = 0.99f};

TEST(UpdateSignSgdTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(CaseOf(kPlain));
  ExpectMatchesTheExactLoop(CaseOf(kShrinking));
}

TEST(UpdateSignSgdTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(CaseOf(kPlain));
  ExpectTheSameBitsEverywhere(CaseOf(kShrinking));
}

TEST(UpdateSignSgdTest, AGradientOfZeroOfEitherSignMovesNothing) {
  OnEveryTarget([] {
    std::vector<float> masters = {1, 1, 1, 1, 1};
    UpdateSignSgd(kPlain, std::vector<float>{0.0f, -0.0f, 1e-30f, -1e30f, 5}, masters);
    EXPECT_EQ(masters, (std::vector<float>{1, 1, 0.9f, 1.1f, 0.9f}));
  });
}

}  // namespace
}  // namespace thinwire::kernels
