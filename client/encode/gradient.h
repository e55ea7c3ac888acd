// The gradients that pass through a client: TensorGradient is the gradient of a tensor, which the
// trainer passes to the client; ShardGradient is the gradient of a shard, which an encoder
// receives. Both types refer to the trainer's memory and copy no values.
#ifndef THINWIRE_CLIENT_ENCODE_GRADIENT_H_
#define THINWIRE_CLIENT_ENCODE_GRADIENT_H_

#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/model/partition.h"

namespace thinwire {

// The gradient of one tensor. It is in the same memory as the parameters: in the host's memory, or
// in the memory of a device that may still be computing the gradient.
struct TensorGradient {
  std::span<const float> values;
  // Keeps the gradient's values alive. Null: the caller keeps the values alive until EndStep
  // returns.
  std::shared_ptr<const void> owner;
  // Blocks until the device has computed the values; callable from any thread. Errors: errors of
  // the device. Null: the values are already computed, which is always true for gradients in the
  // host's memory.
  std::function<absl::Status()> wait;
};

namespace client {

// The gradient of one shard. `tensors` contains the gradients of all tensors; `segments` says which
// of their values belong to the shard.
struct ShardGradient {
  std::span<const Segment> segments;
  std::span<const std::span<const float>> tensors;
  std::shared_ptr<const void> owner;  // keeps the values alive; null if there are several segments
  // True if `owner` keeps the values unchanged until the push has its verdict. An fp32 payload may
  // then refer to the values instead of a copy.
  bool may_alias = true;
};

}  // namespace client
}  // namespace thinwire

#endif  // THINWIRE_CLIENT_ENCODE_GRADIENT_H_
