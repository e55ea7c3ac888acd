// One step of AdaGrad (Duchi, Hazan and Singer 2011), for each parameter x and its optimizer state
// (slot) s:
//
//   g = gradient_scale * sum + weight_decay * x
//   s = s + g * g
//   x = x - learning_rate * g / (sqrt(s) + epsilon)
//
// `sum` is the sum of the workers' gradients. g is limited to a magnitude of 2^63, so that g * g is finite. All
// results are saturated: infinities become the largest finite float. Every operation is rounded to
// float separately, so results do not depend on the machine or on a value's position. Uses Highway
// vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_ADAGRAD_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_ADAGRAD_H_

#include <span>

namespace thinwire::kernels {

struct AdagradStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float learning_rate = 0;
  float epsilon = 0;
};

// Returns whether a new master or slot has the magnitude of the largest finite float. REQUIRES: the
// arrays have equal lengths and do not overlap; all values are finite, also gradient_scale * sum.
bool UpdateAdagrad(const AdagradStep& step, std::span<const float> sum, std::span<float> masters,
                   std::span<float> square_sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_ADAGRAD_H_
