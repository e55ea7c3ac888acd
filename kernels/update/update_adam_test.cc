#include "kernels/update/update_adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

UpdateCase CaseOf(const AdamStep& step) {
  return {
      .slot_count = 2,
      .kernel = [step](auto sum, auto masters,
                       auto slots) { return UpdateAdam(step, sum, masters, slots[0], slots[1]); },
      .exact =
          [step](double sum, double& x, std::span<double> slots) {
            const double g = step.gradient_scale * sum + step.weight_decay * x;
            slots[0] = step.beta1 * slots[0] + step.one_minus_beta1 * g;
            slots[1] = step.beta2 * slots[1] + step.one_minus_beta2 * g * g;
            x = step.shrink * x -
                step.step_size * slots[0] / (step.root_scale * std::sqrt(slots[1]) + step.epsilon);
          }};
}

const AdamStep kFirst = {.gradient_scale = 0.3f,
                         .beta1 = 0.9f,
                         .one_minus_beta1 = 0.1f,
                         .beta2 = 0.99f,
                         .one_minus_beta2 = 0.01f,
                         .step_size = 0.01f,
                         .root_scale = 10,
                         .epsilon = 1e-8f};
const AdamStep kDecaying = {.gradient_scale = 0.3f,
                            .weight_decay = 0.07f,
                            .shrink = 0.995f,
                            .beta1 = 0.9f,
                            .one_minus_beta1 = 0.1f,
                            .beta2 = 0.99f,
                            .one_minus_beta2 = 0.01f,
                            .step_size = 0.001f,
                            .root_scale = 1.25f,
                            .epsilon = 1e-3f};

TEST(UpdateAdamTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(CaseOf(kFirst));
  ExpectMatchesTheExactLoop(CaseOf(kDecaying));
}

TEST(UpdateAdamTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(CaseOf(kFirst));
  ExpectTheSameBitsEverywhere(CaseOf(kDecaying));
}

}  // namespace
}  // namespace thinwire::kernels
