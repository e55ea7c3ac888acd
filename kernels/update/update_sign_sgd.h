// One step of signSGD, for each parameter x:
//
//   x = shrink * x - learning_rate * sign(gradient_scale * sum)
//
// sign(0) is 0. `shrink` applies decoupled weight decay. `sum` is the sum of the workers'
// gradients. All results are saturated: infinities become the largest finite float. Every operation
// is rounded to float separately, so results do not depend on the machine or on a value's position.
// Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_SIGN_SGD_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_SIGN_SGD_H_

#include <span>

namespace thinwire::kernels {

struct SignSgdStep {
  float gradient_scale = 1;
  float learning_rate = 0;
  float shrink = 1;
};

// Returns whether a new master has the magnitude of the largest finite float. REQUIRES: the arrays
// have equal lengths and do not overlap; all values are finite.
bool UpdateSignSgd(const SignSgdStep& step, std::span<const float> sum, std::span<float> masters);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_SIGN_SGD_H_
