// HostShardEncoder: the ShardEncoder of gradients in the host's memory.
#ifndef THINWIRE_CLIENT_HOST_SHARD_ENCODER_H_
#define THINWIRE_CLIENT_HOST_SHARD_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/momentum_correction.h"
#include "client/options.h"
#include "client/shard_encoder.h"
#include "common/buffer_pool.h"
#include "common/codec/error_feedback.h"
#include "common/partition.h"

namespace thinwire::client {

// Not thread-safe.
class HostShardEncoder final : public ShardEncoder {
 public:
  HostShardEncoder(const Partition& partition, const ClientOptions& options);

  size_t most_begun() const override { return 1; }
  // Does it all. With an owner, what goes as it is goes without a copy.
  absl::Status Begin(const Work& work) override;
  absl::StatusOr<std::optional<ByteChain>> Finish() override;
  absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                        std::span<const uint32_t> taken) override;
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) override;
  absl::StatusOr<std::vector<Owed>> owed() override;
  absl::Status Restore(ShardId shard, std::span<const float> residual,
                       std::span<const float> momentum) override;

 private:
  struct ShardMemory {
    ErrorFeedback feedback;
    MomentumCorrection correction;
  };

  // FACTOR * GRADIENT, valid until the next call; nothing unless all of it is finite.
  std::optional<std::span<const float>> Scaled(std::span<const float> gradient, float factor);
  ByteChain Encode(const Work& work, std::span<const float> gradient,
                   std::span<const float> scaled);

  std::vector<ShardMemory> shards_;
  BufferPool pool_;
  std::optional<ByteChain> begun_;
  std::vector<float> gathered_;
  std::vector<float> scaled_;
  std::vector<float> direction_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_HOST_SHARD_ENCODER_H_
