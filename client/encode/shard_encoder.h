// ShardEncoder: encodes the gradients of shards in the memory that contains them. For every shard
// it stores the feedback state: the residual, which contains the codec's errors and the values of
// late pushes, and the momentum, if momentum correction is on.
//
//   v = decay * residual + correct(factor * gradient);   payload = C(v)
//   residual = v - decode(payload)
//
// Here, `decay` is ClientOptions::residual_decay, `correct` is momentum correction
// (momentum_correction.h) and C is the codec.
//
// Each call handles a whole shard. HostShardEncoder works in the host's memory, DeviceShardEncoder
// (client/gpu) on a GPU. On a GPU, Begin launches the work and Finish waits for its end, so that
// the caller can begin the next shard before it finishes the previous one. Not thread-safe.
#ifndef THINWIRE_CLIENT_ENCODE_SHARD_ENCODER_H_
#define THINWIRE_CLIENT_ENCODE_SHARD_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/encoding_error.h"
#include "client/encode/gradient.h"
#include "common/base/ids.h"
#include "common/codec/codec.h"
#include "common/codec/payload.h"
#include "common/memory/byte_chain.h"

namespace thinwire::client {

// The feedback state of one shard: its residual and its momentum. An empty span means that all
// values are zero.
struct ShardFeedback {
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
    const Codec& codec;  // the codec made from `spec`
    RandomKeys keys;
    EncodingError* error = nullptr;  // if not null, Begin waits for the payload and adds its error
  };

  virtual ~ShardEncoder() = default;

  // Returns the largest number of shards that may be begun and not finished at the same time.
  virtual size_t most_begun() const = 0;
  // Starts to encode WORK. The codec and the gradient's values must outlive the matching Finish;
  // the arrays to which the gradient's `segments` and `tensors` refer need not outlive this call.
  virtual absl::Status Begin(const Work& work) = 0;
  // Returns the payload of the oldest shard that was begun and not finished. If a value of factor *
  // gradient is not finite, returns nullopt and changes neither residual nor momentum.
  virtual absl::StatusOr<std::optional<ByteChain>> Finish() = 0;

  // Adds decode(PAYLOAD) to the residual of SHARD, except at the indices SELECTED. SELECTED is
  // ascending. REQUIRES: PAYLOAD was encoded from SHARD.
  virtual absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                                std::span<const uint32_t> selected) = 0;

  // Returns the sum of the squares of GRADIENT's values. The sum is not finite if any value is not
  // finite.
  virtual absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) = 0;

  // Returns the residual and the momentum of every shard, indexed by shard number. The result is
  // valid until the next call of another function. REQUIRES: no shard is begun and not finished.
  virtual absl::StatusOr<std::vector<ShardFeedback>> feedback() = 0;
  // Sets the residual and the momentum of SHARD. REQUIRES: no shard is begun and not finished.
  virtual absl::Status Restore(ShardId shard, std::span<const float> residual,
                               std::span<const float> momentum) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_SHARD_ENCODER_H_
