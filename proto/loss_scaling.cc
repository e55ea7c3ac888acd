#include "proto/loss_scaling.h"

namespace thinwire {

std::optional<LossScaling> LossScalingOf(const Task& task) {
  LossScaling scaling{.interval = task.loss_scale_interval()};
  if (task.loss_scale() > 0) {
    scaling.first = static_cast<float>(task.loss_scale());
  } else if (task.precision() != "fp16") {
    return std::nullopt;
  }
  return scaling;
}

}  // namespace thinwire
