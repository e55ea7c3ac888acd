// HostShardEncoder: the ShardEncoder for gradients in the host's memory. Begin encodes the shard
// before it returns.
#ifndef THINWIRE_CLIENT_ENCODE_HOST_SHARD_ENCODER_H_
#define THINWIRE_CLIENT_ENCODE_HOST_SHARD_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/momentum_correction.h"
#include "client/encode/shard_encoder.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/codec/error_feedback.h"
#include "common/memory/buffer_pool.h"
#include "common/memory/byte_chain.h"
#include "common/model/partition.h"

namespace thinwire::client {

// Not thread-safe.
class HostShardEncoder final : public ShardEncoder {
 public:
  HostShardEncoder(const Partition& partition, const ClientOptions& options)
      : HostShardEncoder(partition, options, options.memory) {}
  // MEMORY is the allocator of residuals and momenta; it must outlive this object.
  HostShardEncoder(const Partition& partition, const ClientOptions& options,
                   std::pmr::memory_resource* memory);

  size_t most_begun() const override { return 1; }
  // Encodes the shard. If the codec is fp32, there is no residual, momentum or scaling, and the
  // gradient has an owner, the payload refers to the gradient's memory instead of a copy.
  absl::Status Begin(const Work& work) override;
  absl::StatusOr<std::optional<ByteChain>> Finish() override;
  absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                        std::span<const uint32_t> selected) override;
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) override;
  absl::StatusOr<std::vector<ShardFeedback>> feedback() override;
  absl::Status Restore(ShardId shard, std::span<const float> residual,
                       std::span<const float> momentum) override;
  // Returns the residual and the momentum of SHARD, as feedback() does.
  ShardFeedback FeedbackOf(ShardId shard) const;

 private:
  struct ShardMemory {
    ErrorFeedback feedback;
    MomentumCorrection correction;
  };

  // Returns FACTOR * GRADIENT, which is valid until the next call; nullopt if any value of the
  // product is not finite.
  std::optional<std::span<const float>> Scaled(std::span<const float> gradient, float factor);
  ByteChain Encode(const Work& work, std::span<const float> gradient,
                   std::span<const float> scaled);

  const float residual_decay_;
  std::vector<ShardMemory> shards_;
  BufferPool pool_;
  std::optional<ByteChain> begun_;
  std::vector<float> gathered_;
  std::vector<float> scaled_;
  std::vector<float> direction_;
  std::vector<float> residual_;  // before the encoding, while errors are measured
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_HOST_SHARD_ENCODER_H_
