#include "server/core/optimizer/adam_moments.h"

#include <cmath>

#include "common/repeatable_math.h"

namespace thinwire {

kernels::AdamStep AdamMoments::StepFor(const Update& update) const {
  // In double, as 1 - beta2^t is a small difference at first.
  const double seen1 = 1 - IntegerPower(beta1_, update.number);
  const double seen2 = 1 - IntegerPower(beta2_, update.number);
  return {.gradient_scale = update.gradient_scale,
          .beta1 = static_cast<float>(beta1_),
          .one_minus_beta1 = static_cast<float>(1 - beta1_),
          .beta2 = static_cast<float>(beta2_),
          .one_minus_beta2 = static_cast<float>(1 - beta2_),
          .step_size = static_cast<float>(update.learning_rate / seen1),
          .root_scale = static_cast<float>(1 / std::sqrt(seen2)),
          .epsilon = static_cast<float>(epsilon_)};
}

}  // namespace thinwire
