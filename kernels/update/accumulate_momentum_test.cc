#include "kernels/update/accumulate_momentum.h"

#include <gtest/gtest.h>

#include "kernels/update/update_cases.h"

namespace thinwire::kernels {
namespace {

constexpr float kMomentum = 0.9f;

// UpdateCase describes optimizer kernels, which update an array of parameters. AccumulateMomentum()
// updates the momentum u instead, so these test cases pass u as the array of parameters.
const UpdateCase kHeavyBall = {
    .kernel =
        [](auto gradient, auto u, auto) {
          AccumulateMomentum(kMomentum, gradient, u);
          return false;
        },
    .exact = [](double gradient, double& u, auto) { u = kMomentum * u + gradient; },
    .saturates = false};

const UpdateCase kNesterov = {.slot_count = 1,
                              .kernel =
                                  [](auto gradient, auto u, auto slots) {
                                    AccumulateNesterov(kMomentum, gradient, u, slots[0]);
                                    return false;
                                  },
                              .exact =
                                  [](double gradient, double& u, std::span<double> slots) {
                                    u = kMomentum * u + gradient;
                                    slots[0] = gradient + kMomentum * u;
                                  },
                              .saturates = false};

TEST(AccumulateMomentumTest, EqualsTheFormulaInDouble) {
  ExpectMatchesTheExactLoop(kHeavyBall);
  ExpectMatchesTheExactLoop(kNesterov);
}

TEST(AccumulateMomentumTest, HasTheSameBitsOnEveryTargetAtEveryPosition) {
  ExpectTheSameBitsEverywhere(kHeavyBall);
  ExpectTheSameBitsEverywhere(kNesterov);
}

}  // namespace
}  // namespace thinwire::kernels
