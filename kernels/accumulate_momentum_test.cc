#include "kernels/accumulate_momentum.h"

#include <gtest/gtest.h>

#include "kernels/update_cases.h"

namespace thinwire::kernels {
namespace {

constexpr float kMomentum = 0.9f;

// These update cases pass u, the momentum, in place of the masters.
const UpdateCase kHeavyBall = {
    .kernel = [](auto gradient, auto u, auto) { AccumulateMomentum(kMomentum, gradient, u); },
    .exact = [](double gradient, double& u, auto) { u = kMomentum * u + gradient; }};

const UpdateCase kNesterov = {
    .slot_count = 1,
    .kernel = [](auto gradient, auto u,
                 auto slots) { AccumulateNesterov(kMomentum, gradient, u, slots[0]); },
    .exact =
        [](double gradient, double& u, std::span<double> slots) {
          u = kMomentum * u + gradient;
          slots[0] = gradient + kMomentum * u;
        }};

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
