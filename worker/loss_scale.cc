#include "worker/loss_scale.h"

#include <algorithm>

namespace thinwire {

void LossScale::Good() {
  if (++state_.good_steps < scaling_.interval) return;
  state_ = {.value = std::min(2 * state_.value, scaling_.largest)};
}

void LossScale::Overflowed() {
  ++overflow_count_;
  state_ = {.value = std::max(state_.value / 2, 1.0f)};
}

void LossScale::Restore(const State& state) {
  state_ = state;
  state_.value = std::min(state_.value, scaling_.largest);
}

}  // namespace thinwire
