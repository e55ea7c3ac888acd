// One step of stochastic gradient descent on flat arrays, in one pass.
//
//   g = gradient_scale * sum + weight_decay * x
//   x = x - learning_rate * g
//
// Each operation is rounded to float on its own, so the result does not depend on the machine or on
// where an array begins or ends. Thread-safe: touches nothing but its arguments.
#ifndef THINWIRE_KERNELS_UPDATE_SGD_H_
#define THINWIRE_KERNELS_UPDATE_SGD_H_

#include <span>

namespace thinwire::kernels {

struct SgdStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float learning_rate = 0;
};

// REQUIRES: equal lengths; the arrays do not overlap.
void UpdateSgd(const SgdStep& step, std::span<const float> sum, std::span<float> masters);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_SGD_H_
