// One step of Adam or AdamW, for each parameter x and its optimizer state (slots) m and v:
//
//   g = gradient_scale * sum + weight_decay * x
//   x = shrink * x
//   m = beta1 * m + one_minus_beta1 * g
//   v = beta2 * v + one_minus_beta2 * g * g
//   x = x - step_size * m / (root_scale * sqrt(v) + epsilon)
//
// `sum` is the sum of the workers' gradients. The caller includes the bias correction in step_size and
// root_scale, and AdamW's weight decay in shrink (1 means no decay). g is limited to a magnitude of
// 2^63, so that g * g and the slots are finite. x is saturated: infinities become the largest finite
// float. Every operation is rounded to float separately, so results do not depend on the machine or
// on a value's position. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_ADAM_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_ADAM_H_

#include <span>

namespace thinwire::kernels {

struct AdamStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float shrink = 1;
  float beta1 = 0;
  float one_minus_beta1 = 1;  // 1 - beta1, computed in double, then rounded
  float beta2 = 0;
  float one_minus_beta2 = 1;
  float step_size = 0;
  float root_scale = 1;
  float epsilon = 0;
};

// Returns whether a new master has the magnitude of the largest finite float. REQUIRES: the arrays
// have equal lengths and do not overlap; all values are finite, also gradient_scale * sum; the slots
// are 0 or results of this function with betas below 1.
bool UpdateAdam(const AdamStep& step, std::span<const float> sum, std::span<float> masters,
                std::span<float> first_moment, std::span<float> second_moment);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_ADAM_H_
