// DeviceParameters is the ParameterMemory of a GPU. Changes are copied to the GPU in about their
// wire length (device_decode.h) and decoded there. Values are copied back only if the server sent a
// hash to compare with.
//
// Apply() waits until the new values are complete, so kernels that the caller launches later read
// them on any stream.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_PARAMETERS_H_
#define THINWIRE_CLIENT_GPU_DEVICE_PARAMETERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/gpu/payload_stage.h"
#include "client/replica/parameter_memory.h"
#include "common/partition.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Not thread-safe.
class DeviceParameters final : public ParameterMemory {
 public:
  // All values are 0 at first. PARTITION outlives the object. Errors: CUDA errors.
  static absl::StatusOr<std::unique_ptr<DeviceParameters>> Make(const Partition& partition);

  // Returns memory of the GPU that begins at a multiple of 256 bytes.
  std::span<float> tensor(uint32_t tensor) override { return tensors_[tensor]; }
  absl::Status Fill(std::span<const std::span<const float>> values) override;
  ByteChain SeedPayload(ShardId shard) const override;
  absl::StatusOr<uint64_t> Apply(const ParameterChange& change) override;

 private:
  explicit DeviceParameters(const Partition& partition);

  kernels::cuda::Status Open();
  kernels::cuda::Status Upload();
  // Launches CHANGE and, if it wants a hash, the copy of the new values to on_host_.
  kernels::cuda::Status Launch(const ParameterChange& change);
  kernels::cuda::Status Decode(const ParameterChange& change, std::span<float> values);
  // Frees the initial values once every shard has been changed by a server.
  void ForgetInitial(ShardId shard);

  const Partition& partition_;
  kernels::cuda::Stream stream_;
  kernels::cuda::DeviceBuffer<float> memory_;
  std::vector<std::span<float>> tensors_;
  PayloadStage stage_;
  kernels::cuda::DeviceBuffer<float> gathered_;  // values of a shard with several segments
  kernels::cuda::PinnedBuffer<float> on_host_;   // values to hash

  // The values that Fill() set, on the host, for SeedPayload().
  std::vector<std::vector<float>> initial_;
  std::vector<bool> changed_;  // per shard
  size_t unchanged_count_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_PARAMETERS_H_
