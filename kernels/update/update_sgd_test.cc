#include "kernels/update/update_sgd.h"

#include <gtest/gtest.h>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

UpdateCase CaseOf(const SgdStep& step) {
  return {.slot_count = 0,
          .kernel = [step](auto sum, auto masters, auto) { return UpdateSgd(step, sum, masters); },
          .exact =
              [step](double sum, double& x, auto) {
                const double g = step.gradient_scale * sum + step.weight_decay * x;
                x -= step.learning_rate * g;
              }};
}

const SgdStep kPlain = {.gradient_scale = 0.3f, .learning_rate = 0.1f};
const SgdStep kDecaying = {.gradient_scale = 0.3f, .weight_decay = 0.07f, .learning_rate = 0.1f};

TEST(UpdateSgdTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(CaseOf(kPlain));
  ExpectMatchesTheExactLoop(CaseOf(kDecaying));
}

TEST(UpdateSgdTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(CaseOf(kPlain));
  ExpectTheSameBitsEverywhere(CaseOf(kDecaying));
}

}  // namespace
}  // namespace thinwire::kernels
