// One step of stochastic gradient descent, for each parameter x:
//
//   g = gradient_scale * sum + weight_decay * x
//   x = x - learning_rate * g
//
// Every operation is rounded to float separately, so results do not depend on the machine or on a
// value's position. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_SGD_H_
#define THINWIRE_KERNELS_UPDATE_SGD_H_

#include <span>

namespace thinwire::kernels {

struct SgdStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float learning_rate = 0;
};

// REQUIRES: the arrays have equal lengths and do not overlap.
void UpdateSgd(const SgdStep& step, std::span<const float> sum, std::span<float> masters);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_SGD_H_
