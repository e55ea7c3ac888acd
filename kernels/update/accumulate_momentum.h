// Momentum u of a gradient, elementwise:
//
//   AccumulateMomentum   u = momentum * u + gradient
//   AccumulateNesterov   u = momentum * u + gradient;  direction = gradient + momentum * u
//
// Workers use these functions for momentum correction; update_momentum.h applies the same formulas
// and then updates parameters. Every operation is rounded to float separately, so results do not
// depend on the machine or on a value's position. Uses Highway vector instructions. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_ACCUMULATE_MOMENTUM_H_
#define THINWIRE_KERNELS_UPDATE_ACCUMULATE_MOMENTUM_H_

#include <span>

namespace thinwire::kernels {

// REQUIRES, for both functions: the arrays have equal lengths and do not overlap.

void AccumulateMomentum(float momentum, std::span<const float> gradient, std::span<float> u);

void AccumulateNesterov(float momentum, std::span<const float> gradient, std::span<float> u,
                        std::span<float> direction);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_ACCUMULATE_MOMENTUM_H_
