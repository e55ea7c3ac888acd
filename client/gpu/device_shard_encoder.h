// DeviceShardEncoder is the ShardEncoder for gradients on a GPU. Gradients, residuals and momenta
// stay in GPU memory. Only payloads are copied to the host, into pinned memory; the client sends
// them from there without another copy.
//
//   gradient stream   gathering, scaling and checking of shard k + 1
//   payload stream    momentum and encoding of shard k | copy of payload k to the host | ...
//
// Begin() waits only for the check that the gradient is finite. Therefore Begin() can launch the
// next shard while the GPU still encodes and copies the previous shard. Finish() waits for the
// copy. For factor masking, the indices of a sparse payload are copied back to the GPU.
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
#include "common/memory/buffer_pool.h"
#include "common/model/partition.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Not thread-safe.
class DeviceShardEncoder final : public ShardEncoder {
 public:
  // PARTITION must outlive the encoder. Errors: CUDA errors.
  static absl::StatusOr<std::unique_ptr<DeviceShardEncoder>> Make(const Partition& partition,
                                                                  const ClientOptions& options);

  size_t most_begun() const override { return kSlots; }
  // All functions return CUDA errors. Begin() also returns the errors of DeviceCodec::Make.
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
  // The number of codecs to keep: a step uses at most three, one per group of tensors.
  static constexpr size_t kCodecs = 3;

  // The residual and the momentum of a shard.
  struct ShardMemory {
    size_t count;
    bool has_residual = false;  // false: all values are zero and the array is not used
    kernels::cuda::DeviceBuffer<float> residual;
    kernels::cuda::DeviceBuffer<float> momentum;  // empty: all values are zero
    DeviceCodecMemory codec;
  };

  // A shard between Begin() and Finish(), and its memory, which later shards reuse.
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
    std::vector<uint32_t> sent;  // the sent indices, while they are copied to the GPU
  };

  DeviceShardEncoder(const Partition& partition, const ClientOptions& options);

  kernels::cuda::Status Open();
  absl::StatusOr<const DeviceCodec*> CodecOf(const CodecSpec& spec);
  // Applies momentum correction to the gradient that VALUES refers to, and makes VALUES refer to
  // the result.
  kernels::cuda::Status Correct(ShardMemory& memory, std::span<const float>& values);
  // If MEMORY has no residual yet, allocates one and sets it to zero.
  kernels::cuda::Status PrepareResidual(ShardMemory& memory);
  // Launches the encoding of VALUES and the copies of the payload and its length to the host.
  kernels::cuda::Status Encode(const DeviceCodec& codec, const Work& work,
                               std::span<const float> values, Slot& slot);
  // Returns the payload of SLOT, whose copy to the host is finished.
  static ByteChain PayloadOf(Slot& slot);
  // Launches factor masking: sets the momentum to zero at the indices of the sparse payload BYTES.
  kernels::cuda::Status MaskMomentum(const ByteChain& bytes, Slot& slot);
  kernels::cuda::Status AddBack(ShardMemory& memory, const CheckedPayload& payload,
                                std::span<const uint32_t> selected);
  // Copies the residuals and momenta of all shards to on_host_.
  kernels::cuda::Status CopyFeedback();
  kernels::cuda::Status CopyToMemory(std::span<const float> residual,
                                     std::span<const float> momentum, ShardMemory& memory);

  const CorrectionOptions correction_;
  const bool keep_error_;
  const float residual_decay_;
  GradientStage gradients_;
  kernels::cuda::Stream stream_;
  std::vector<ShardMemory> shards_;
  // The threshold that topk predicts for each shard's next step.
  kernels::cuda::DeviceBuffer<uint32_t> thresholds_;
  std::array<Slot, kSlots> slots_;
  size_t oldest_ = 0;
  size_t begun_count_ = 0;

  // Codecs and memory that all launches on stream_ share.
  std::deque<std::pair<CodecSpec, std::unique_ptr<const DeviceCodec>>> codecs_;
  kernels::cuda::DeviceBuffer<std::byte> workspace_;
  kernels::cuda::DeviceBuffer<float> direction_;
  kernels::cuda::DeviceBuffer<uint32_t> indices_;
  kernels::cuda::DeviceBuffer<float> kept_;  // residual values to restore at indices_
  PayloadStage given_back_;
  BufferPool pool_;
  std::vector<std::pair<std::vector<float>, std::vector<float>>> on_host_;  // feedback()'s result
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_SHARD_ENCODER_H_
