// One step of Lion, for each parameter x and its optimizer state (slot) m:
//
//   g = gradient_scale * sum
//   x = shrink * x - learning_rate * sign(beta1 * m + (1 - beta1) * g)
//   m = beta2 * m + (1 - beta2) * g
//
// sign(0) is 0. `shrink` applies decoupled weight decay. `sum` is the sum of the workers' gradients.
// All results are saturated: infinities become the largest finite float. Every operation is rounded
// to float separately, so results do not depend on the machine or on a value's position. Uses
// Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_LION_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_LION_H_

#include <span>

namespace thinwire::kernels {

struct LionStep {
  float gradient_scale = 1;
  float beta1 = 0;
  float one_minus_beta1 = 1;
  float beta2 = 0;
  float one_minus_beta2 = 1;
  float learning_rate = 0;
  float shrink = 1;
};

// Returns whether a new master or slot has the magnitude of the largest finite float. REQUIRES: the
// arrays have equal lengths and do not overlap; all values are finite, also gradient_scale * sum; the
// betas are at least 0 and below 1.
bool UpdateLion(const LionStep& step, std::span<const float> sum, std::span<float> masters,
                std::span<float> momentum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_LION_H_
