// ShardEncoder: encodes the gradients of shards where they lie, and remembers for every shard what
// is owed: the codec's loss, the values that were given back, and the momentum, where it is applied
// here.
//
//   v = residual + correct(factor * gradient);   payload = C(v);   residual = v - decode(payload)
//
// One call handles a whole shard. HostShardEncoder does it in the host's memory, classes of gpu/ on
// a GPU, where the host is one shard ahead: Begin launches, Finish waits. Not thread-safe.
#ifndef THINWIRE_CLIENT_SHARD_ENCODER_H_
#define THINWIRE_CLIENT_SHARD_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

// A shard's gradient where backward left it: the segments of the tensors' gradients.
struct ShardGradient {
  std::span<const Segment> segments;
  std::span<const std::span<const float>> tensors;
  std::shared_ptr<const void> owner;  // of the values, if there is one segment
  // Whether the owner keeps the values unchanged until the push is judged.
  bool may_lend = true;
};

// What is owed of one shard, without the examples; empty where it is zero.
struct Owed {
  std::span<const float> residual;
  std::span<const float> momentum;
};

class ShardEncoder {
 public:
  struct Work {
    ShardId shard;
    ShardGradient gradient;
    float factor = 1;
    CodecSpec spec;
    const Codec& codec;  // of SPEC; at least until Finish
    RandomKeys keys;
  };

  virtual ~ShardEncoder() = default;

  // How many may be begun and not finished.
  virtual size_t most_begun() const = 0;
  // What WORK refers to stays until its Finish, but for `segments` and `tensors` themselves.
  virtual absl::Status Begin(const Work& work) = 0;
  // The payload of the oldest that was begun; nothing, and nothing changed, where a value of
  // factor * gradient is not finite.
  virtual absl::StatusOr<std::optional<ByteChain>> Finish() = 0;

  // Adds the decoded PAYLOAD to the residual, except at the indices TAKEN, which ascend. REQUIRES:
  // a payload of SHARD.
  virtual absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                                std::span<const uint32_t> taken) = 0;

  // Of a gradient's values; not finite where one of them is not.
  virtual absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) = 0;

  // By shard number; valid until the next call of another function. REQUIRES, for both: nothing is
  // begun.
  virtual absl::StatusOr<std::vector<Owed>> owed() = 0;
  // Goes on from what owed() was of SHARD.
  virtual absl::Status Restore(ShardId shard, std::span<const float> residual,
                               std::span<const float> momentum) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_SHARD_ENCODER_H_
