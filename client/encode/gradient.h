// Gradients as they pass through a client: a tensor's as the trainer hands it over, and a shard's
// as an encoder receives it. Both refer to the trainer's memory and copy no values.
#ifndef THINWIRE_CLIENT_ENCODE_GRADIENT_H_
#define THINWIRE_CLIENT_ENCODE_GRADIENT_H_

#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/partition.h"

namespace thinwire {

// The gradient of one tensor. It lies where the parameters do: in the host's memory, or on a device
// that may still be computing it.
struct TensorGradient {
  std::span<const float> values;
  // Keeps the values alive. Null: the caller keeps them alive until EndStep returns.
  std::shared_ptr<const void> owner;
  // Blocks until the device has computed the values. May be called on any thread. Errors: those of
  // the device. Null: the values are complete, which is always true in the host's memory.
  std::function<absl::Status()> wait;
};

namespace client {

// The gradient of one shard: SEGMENTS of the tensors' gradients.
struct ShardGradient {
  std::span<const Segment> segments;
  std::span<const std::span<const float>> tensors;
  std::shared_ptr<const void> owner;  // keeps the values alive; set only if there is one segment
  // Whether OWNER keeps the values unchanged until the push has its verdict. If so, an fp32 payload
  // may refer to the values in place of a copy.
  bool may_alias = true;
};

}  // namespace client
}  // namespace thinwire

#endif  // THINWIRE_CLIENT_ENCODE_GRADIENT_H_
