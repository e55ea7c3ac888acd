// DeviceShardEncoder: the ShardEncoder of a GPU. Gradients, residuals and momenta stay there; what
// comes back to the host are payloads, in pinned memory that goes to the wire as it is.
//
//   stream of gradients   gather, multiply, check of k + 1
//   stream of payloads    momentum, encode of k | copy of k to the host | ...
//
// Begin waits for the check alone, so the next shard is launched while the one before is still
// encoded and copied. Finish waits for that. Where momentum is masked, the indices that a sparse
// payload sent go back to the device.
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
  // Errors: the device's.
  static absl::StatusOr<std::unique_ptr<DeviceShardEncoder>> Make(const Partition& partition,
                                                                  const ClientOptions& options);

  size_t most_begun() const override { return kSlots; }
  // Errors, beside the device's: those of MakeCodec.
  absl::Status Begin(const Work& work) override;
  absl::StatusOr<std::optional<ByteChain>> Finish() override;
  absl::Status GiveBack(ShardId shard, const CheckedPayload& payload,
                        std::span<const uint32_t> taken) override;
  absl::StatusOr<double> SumOfSquares(std::span<const float> gradient) override;
  absl::StatusOr<std::vector<ShardFeedback>> feedback() override;
  absl::Status Restore(ShardId shard, std::span<const float> residual,
                       std::span<const float> momentum) override;

 private:
  static constexpr size_t kSlots = 2;
  static constexpr size_t kCodecs =
      3;  // as many as a step has at most, one of each group of tensors

  struct ShardMemory {
    size_t count;
    bool owes = false;  // whether the residual is not zero
    kernels::cuda::DeviceBuffer<float> residual;
    kernels::cuda::DeviceBuffer<float> momentum;  // empty: zero
  };
  // A shard that is begun.
  struct Slot {
    ShardId shard;
    bool finite = false;
    std::shared_ptr<const void> owner;  // of the gradient
    std::shared_ptr<const BufferPool::Buffer> out;
    kernels::cuda::Event done;
    kernels::cuda::DeviceBuffer<float> room;
    kernels::cuda::DeviceBuffer<std::byte> payload;
    kernels::cuda::DeviceBuffer<uint32_t> size;
    kernels::cuda::PinnedBuffer<uint32_t> size_on_host;
    std::vector<uint32_t> sent;  // indices on their way to the device
  };

  DeviceShardEncoder(const Partition& partition, const ClientOptions& options);

  kernels::cuda::Status Open();
  absl::StatusOr<const DeviceCodec*> CodecOf(const CodecSpec& spec);
  // VALUES becomes what is to be added to the residual in its place.
  kernels::cuda::Status Correct(ShardMemory& memory, std::span<const float>& values);
  // The residual of MEMORY, zero if nothing is owed.
  kernels::cuda::Status Owe(ShardMemory& memory);
  kernels::cuda::Status Encode(const DeviceCodec& codec, const Work& work,
                               std::span<const float> values, Slot& slot);
  kernels::cuda::Status Mask(const ByteChain& bytes, Slot& slot);
  kernels::cuda::Status AddBack(ShardMemory& memory, const CheckedPayload& payload,
                                std::span<const uint32_t> taken);
  kernels::cuda::Status CopyOwed();

  const CorrectionOptions correction_;
  const bool keep_error_;
  GradientStage gradients_;
  kernels::cuda::Stream stream_;
  std::vector<ShardMemory> shards_;
  kernels::cuda::DeviceBuffer<uint32_t> collect_from_;  // per shard
  std::array<Slot, kSlots> slots_;
  size_t oldest_ = 0;
  size_t begun_count_ = 0;

  // What a call on the stream works in.
  std::deque<std::pair<CodecSpec, std::unique_ptr<const DeviceCodec>>> codecs_;
  kernels::cuda::DeviceBuffer<std::byte> workspace_;
  kernels::cuda::DeviceBuffer<float> direction_;
  kernels::cuda::DeviceBuffer<uint32_t> indices_;
  kernels::cuda::DeviceBuffer<float> kept_;  // values at indices_
  PayloadStage given_back_;
  BufferPool pool_;
  std::vector<std::pair<std::vector<float>, std::vector<float>>> on_host_;  // what is owed
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_SHARD_ENCODER_H_
