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

#include <optional>

#include "common/spec/task_spec.h"
#include "proto/config.pb.h"

namespace thinwire {

// Nothing where the loss is not scaled. REQUIRES: a task that the configuration's check passed.
std::optional<LossScaling> LossScalingOf(const Task& task);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_LOSS_SCALING_H_
