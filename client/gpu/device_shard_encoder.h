// DeviceShardEncoder is the ShardEncoder of a GPU. Gradients, residuals and momenta stay in GPU
// memory. Only payloads are copied to the host, into pinned memory from which they are sent without
// another copy.
//
//   gradient stream   gather, multiply and check shard k + 1
//   payload stream    momentum and encoding of shard k | copy of payload k to the host | ...
//
// Begin() waits only for the check, so the next shard is launched while the previous one is still
// encoded and copied. Finish() waits for the copy. With factor masking, the indices that a sparse
// payload sent are copied back to the GPU.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_SHARD_ENCODER_H_
#define THINWIRE_CLIENT_GPU_DEVICE_SHARD_ENCODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/shard_encoder.h"
#include "client/gpu/device_codec.h"
#include "client/gpu/gradient_stage.h"
#include "client/gpu/payload_stage.h"
#include "client/options/client_options.h"
#include "common/buffer_pool.h"
#include "common/partition.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Not thread-safe.
class DeviceShardEncoder final : public ShardEncoder {
 public:
  // PARTITION outlives the encoder. Errors: CUDA errors.
  static absl::StatusOr<std::unique_ptr<DeviceShardEncoder>> Make(const Partition& partition,
                                                                  const ClientOptions& options);

  size_t most_begun() const override { return kSlots; }
  // Errors of all functions: CUDA errors; of Begin() also those of DeviceCodec::Make.
  absl::Status Begin(const Work& work) override;
  absl::StatusOr<std::optional<ByteChain>> Finish() override;
  absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                        std::span<const uint32_t> selected) override;
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) override;
  absl::StatusOr<std::vector<ShardFeedback>> feedback() override;
  absl::Status Restore(ShardId shard, std::span<const float> residual,
                       std::span<const float> momentum) override;

 private:
  static constexpr size_t kSlots = 2;
  // A step uses at most three codecs, one per tensor group.
  static constexpr size_t kCodecs = 3;

  // The feedback state of a shard.
  struct ShardMemory {
    size_t count;
    bool has_residual = false;  // false: the residual is zero and its array is not used
    kernels::cuda::DeviceBuffer<float> residual;
    kernels::cuda::DeviceBuffer<float> momentum;  // empty: zero
  };

  // A shard between Begin() and Finish(), and its memory, which is reused.
  struct Slot {
    ShardId shard;
    bool finite = false;
    std::shared_ptr<const void> owner;  // keeps the gradient alive
    std::shared_ptr<const BufferPool::Buffer> out;
    kernels::cuda::Event done;
    kernels::cuda::DeviceBuffer<float> gradient;
    kernels::cuda::DeviceBuffer<std::byte> payload;
    kernels::cuda::DeviceBuffer<uint32_t> size;
    kernels::cuda::PinnedBuffer<uint32_t> size_on_host;
    std::vector<uint32_t> sent;  // indices, while they are copied to the GPU
  };

  DeviceShardEncoder(const Partition& partition, const ClientOptions& options);

  kernels::cuda::Status Open();
  absl::StatusOr<const DeviceCodec*> CodecOf(const CodecSpec& spec);
  // Applies momentum correction to the gradient VALUES and sets VALUES to the result.
  kernels::cuda::Status Correct(ShardMemory& memory, std::span<const float>& values);
  // Allocates the residual of MEMORY and sets it to 0, unless MEMORY has a residual.
  kernels::cuda::Status PrepareResidual(ShardMemory& memory);
  // Launches the encoding of VALUES and the copies of the payload and its length to the host.
  kernels::cuda::Status Encode(const DeviceCodec& codec, const Work& work,
                               std::span<const float> values, Slot& slot);
  // Factor masking: launches momentum = 0 at the indices that the payload BYTES sent.
  kernels::cuda::Status MaskMomentum(const ByteChain& bytes, Slot& slot);
  kernels::cuda::Status AddBack(ShardMemory& memory, const CheckedPayload& payload,
                                std::span<const uint32_t> selected);
  // Copies the feedback state of all shards to on_host_.
  kernels::cuda::Status CopyFeedback();
  kernels::cuda::Status CopyToMemory(std::span<const float> residual,
                                     std::span<const float> momentum, ShardMemory& memory);

  const CorrectionOptions correction_;
  const bool keep_error_;
  GradientStage gradients_;
  kernels::cuda::Stream stream_;
  std::vector<ShardMemory> shards_;
  kernels::cuda::DeviceBuffer<uint32_t> thresholds_;  // DeviceCodec::Encode, per shard
  std::array<Slot, kSlots> slots_;
  size_t oldest_ = 0;
  size_t begun_count_ = 0;

  // Memory that the launches on stream_ share.
  std::deque<std::pair<CodecSpec, std::unique_ptr<const DeviceCodec>>> codecs_;
  kernels::cuda::DeviceBuffer<std::byte> workspace_;
  kernels::cuda::DeviceBuffer<float> direction_;
  kernels::cuda::DeviceBuffer<uint32_t> indices_;
  kernels::cuda::DeviceBuffer<float> kept_;  // values at indices_
  PayloadStage given_back_;
  BufferPool pool_;
  std::vector<std::pair<std::vector<float>, std::vector<float>>> on_host_;  // for feedback()
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_SHARD_ENCODER_H_
