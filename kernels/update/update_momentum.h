// One step of gradient descent with momentum, for each parameter x and its optimizer state (slot)
// u:
//
//   g = factor * (gradient_scale * sum + weight_decay * x)
//   u = momentum * u + g
//   x = x - learning_rate * u                      heavy ball
//   x = x - learning_rate * (g + momentum * u)     nesterov
//
// `sum` is the sum of the workers' gradients. All results are saturated: infinities become the largest finite
// float. Every operation is rounded to float separately, so results do not depend on the machine or
// on a value's position. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_MOMENTUM_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_MOMENTUM_H_

#include <span>

namespace thinwire::kernels {

struct MomentumStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float factor = 1;
  float learning_rate = 0;
  float momentum = 0;
  bool nesterov = false;
};

// Returns whether a new master or slot has the magnitude of the largest finite float. REQUIRES: the
// arrays have equal lengths and do not overlap; all values are finite, also gradient_scale * sum.
bool UpdateMomentum(const MomentumStep& step, std::span<const float> sum, std::span<float> masters,
                    std::span<float> velocity);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_MOMENTUM_H_
