#include "kernels/update/update_adagrad.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

UpdateCase CaseOf(const AdagradStep& step) {
  return {.slot_count = 1,
          .kernel = [step](auto sum, auto masters,
                           auto slots) { return UpdateAdagrad(step, sum, masters, slots[0]); },
          .exact =
              [step](double sum, double& x, std::span<double> slots) {
                const double g = step.gradient_scale * sum + step.weight_decay * x;
                slots[0] += g * g;
                x -= step.learning_rate * g / (std::sqrt(slots[0]) + step.epsilon);
              }};
}

const AdagradStep kPlain = {.gradient_scale = 0.3f, .learning_rate = 0.1f, .epsilon = 1e-8f};
const AdagradStep kDecaying = {
    .gradient_scale = 0.3f, .weight_decay = 0.07f, .learning_rate = 0.1f, .epsilon = 1e-3f};

TEST(UpdateAdagradTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(CaseOf(kPlain));
  ExpectMatchesTheExactLoop(CaseOf(kDecaying));
}

TEST(UpdateAdagradTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(CaseOf(kPlain));
  ExpectTheSameBitsEverywhere(CaseOf(kDecaying));
}

}  // namespace
}  // namespace thinwire::kernels
