// One step of Adam or AdamW on flat arrays, in one pass.
//
//   g = gradient_scale * sum + weight_decay * x
//   x = shrink * x
//   m = beta1 * m + rest1 * g
//   v = beta2 * v + rest2 * g * g
//   x = x - step_size * m / (root_scale * sqrt(v) + epsilon)
//
// The caller puts the bias correction into step_size and root_scale, AdamW's decay into shrink (1:
// none). Each operation is rounded to float on its own, so the result does not depend on the
// machine or on where an array begins or ends. Thread-safe: touches nothing but its arguments.
#ifndef THINWIRE_KERNELS_UPDATE_ADAM_H_
#define THINWIRE_KERNELS_UPDATE_ADAM_H_

#include <span>

namespace thinwire::kernels {

struct AdamStep {
  float gradient_scale = 1;
  float weight_decay = 0;
  float shrink = 1;
  float beta1 = 0;
  float rest1 = 1;  // 1 - beta1, before it was rounded
  float beta2 = 0;
  float rest2 = 1;
  float step_size = 0;
  float root_scale = 1;
  float epsilon = 0;
};

// REQUIRES: equal lengths; the arrays do not overlap.
void UpdateAdam(const AdamStep& step, std::span<const float> sum, std::span<float> masters,
                std::span<float> first_moment, std::span<float> second_moment);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_ADAM_H_
