// LossScaling: what a Task says of the factor that a worker's loss is multiplied by, so that the
// small gradients of a backward in low precision do not vanish (Micikevicius et al. 2018, section
// 3.2). worker/loss_scale.h moves it.
//
//   loss_scale   precision     first value
//   0            fp16          65536
//   0            fp32, bf16    the loss is not scaled: bf16 has the range of fp32
//   s            any           s
//
// A value type; the function is pure: thread-safe.
#ifndef THINWIRE_PROTO_LOSS_SCALING_H_
#define THINWIRE_PROTO_LOSS_SCALING_H_

#include <cstdint>
#include <optional>

#include "proto/config.pb.h"

namespace thinwire {

// Above this nothing is gained: a gradient of 2^-48 is then still a half. And an ordinary loss
// stays far from the end of fp32.
inline constexpr float kLargestLossScale = 0x1p24f;

struct LossScaling {
  float first = 65536;       // a power of two from 1 to the largest
  uint64_t interval = 2000;  // steps in a row without overflow until it doubles
  float largest = kLargestLossScale;

  bool operator==(const LossScaling&) const = default;
};

// Nothing where the loss is not scaled. REQUIRES: a task that the configuration's check passed.
std::optional<LossScaling> LossScalingOf(const Task& task);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_LOSS_SCALING_H_
