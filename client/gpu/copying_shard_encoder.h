// CopyingShardEncoder: gradients come from a GPU, and are encoded on the host: for a codec that has
// no twin there, or one that is chosen by its speed on the host. Not thread-safe.
#ifndef THINWIRE_CLIENT_GPU_COPYING_SHARD_ENCODER_H_
#define THINWIRE_CLIENT_GPU_COPYING_SHARD_ENCODER_H_

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/host_shard_encoder.h"
#include "client/options.h"
#include "client/shard_encoder.h"
#include "common/partition.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/stream.h"

namespace thinwire::client::gpu {

class CopyingShardEncoder final : public ShardEncoder {
 public:
  // Errors: the device's.
  static absl::StatusOr<std::unique_ptr<CopyingShardEncoder>> Make(const Partition& partition,
                                                                   const ClientOptions& options);

  size_t most_begun() const override { return host_.most_begun(); }
  absl::Status Begin(const Work& work) override;
  absl::StatusOr<std::optional<ByteChain>> Finish() override { return host_.Finish(); }
  absl::Status GiveBack(ShardId shard, const ByteChain& payload,
                        std::span<const uint32_t> taken) override {
    return host_.GiveBack(shard, payload, taken);
  }
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) override;
  absl::StatusOr<std::vector<Owed>> owed() override { return host_.owed(); }
  absl::Status Restore(ShardId shard, std::vector<float> residual,
                       std::vector<float> momentum) override {
    return host_.Restore(shard, std::move(residual), std::move(momentum));
  }

 private:
  CopyingShardEncoder(const Partition& partition, const ClientOptions& options)
      : host_(partition, options) {}

  // What SEGMENTS name of TENSORS, on the host; valid until the next call.
  absl::StatusOr<std::span<const float>> Copy(std::span<const Segment> segments,
                                              std::span<const std::span<const float>> tensors);

  HostShardEncoder host_;
  kernels::cuda::Stream stream_;
  kernels::cuda::PinnedBuffer<float> copied_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_COPYING_SHARD_ENCODER_H_
