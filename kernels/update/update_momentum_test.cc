#include "kernels/update/update_momentum.h"

#include <gtest/gtest.h>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

UpdateCase CaseOf(const MomentumStep& step) {
  return {.slot_count = 1,
          .kernel = [step](auto sum, auto masters,
                           auto slots) { return UpdateMomentum(step, sum, masters, slots[0]); },
          .exact =
              [step](double sum, double& x, std::span<double> slots) {
                const double g = step.factor * (step.gradient_scale * sum + step.weight_decay * x);
                slots[0] = step.momentum * slots[0] + g;
                const double direction = step.nesterov ? g + step.momentum * slots[0] : slots[0];
                x -= step.learning_rate * direction;
              }};
}

const MomentumStep kHeavyBall = {.gradient_scale = 0.3f, .learning_rate = 0.1f, .momentum = 0.9f};
const MomentumStep kDecaying = {
    .gradient_scale = 0.3f, .weight_decay = 0.07f, .learning_rate = 0.1f, .momentum = 0.9f};
const MomentumStep kScaled = {.gradient_scale = 0.3f,
                              .weight_decay = 0.07f,
                              .factor = 1.7f,
                              .learning_rate = 1,
                              .momentum = 0.9f};
const MomentumStep kNesterov = {.gradient_scale = 0.3f,
                                .weight_decay = 0.07f,
                                .learning_rate = 0.1f,
                                .momentum = 0.9f,
                                .nesterov = true};

TEST(UpdateMomentumTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(CaseOf(kHeavyBall));
  ExpectMatchesTheExactLoop(CaseOf(kDecaying));
  ExpectMatchesTheExactLoop(CaseOf(kScaled));
  ExpectMatchesTheExactLoop(CaseOf(kNesterov));
}

TEST(UpdateMomentumTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(CaseOf(kHeavyBall));
  ExpectTheSameBitsEverywhere(CaseOf(kDecaying));
  ExpectTheSameBitsEverywhere(CaseOf(kScaled));
  ExpectTheSameBitsEverywhere(CaseOf(kNesterov));
}

}  // namespace
}  // namespace thinwire::kernels
