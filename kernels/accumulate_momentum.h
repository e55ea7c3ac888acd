// Momentum where the gradient is made, on flat arrays, in one pass.
//
//   u = momentum * u + gradient
//   direction = u                             heavy ball
//   direction = gradient + momentum * u       nesterov
//
// update_momentum.h has the same formulas with the step that follows. Each operation is rounded to
// float on its own, so the result does not depend on the machine or on where an array begins or
// ends. Thread-safe: touches nothing but its arguments.
#ifndef THINWIRE_KERNELS_ACCUMULATE_MOMENTUM_H_
#define THINWIRE_KERNELS_ACCUMULATE_MOMENTUM_H_

#include <span>

namespace thinwire::kernels {

// Heavy ball: the direction is U. REQUIRES, for both: equal lengths; the arrays do not overlap.
void AccumulateMomentum(float momentum, std::span<const float> gradient, std::span<float> u);

void AccumulateNesterov(float momentum, std::span<const float> gradient, std::span<float> u,
                        std::span<float> direction);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_ACCUMULATE_MOMENTUM_H_
