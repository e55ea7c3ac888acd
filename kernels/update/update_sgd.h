// One step of stochastic gradient descent, for each parameter x:
//
//   g = gradient_scale * sum + weight_decay * x
//   x = x - learning_rate * g
//
// `sum` is the sum of the workers' gradients. All results are saturated: infinities become the largest finite
// float. Every operation is rounded to float separately, so results do not depend on the machine or
// on a value's position. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_SGD_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_SGD_H_

#include <span>

namespace thinwire::kernels {

struct SgdStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float learning_rate = 0;
};

// Returns whether a new master has the magnitude of the largest finite float. REQUIRES: the arrays
// have equal lengths and do not overlap; all values are finite, also gradient_scale * sum.
bool UpdateSgd(const SgdStep& step, std::span<const float> sum, std::span<float> masters);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_SGD_H_
