// DeviceParameters is the ParameterMemory on a GPU. A change is copied to the GPU in a form that is
// about as long as the received payload (device_decode.h), and is decoded on the GPU. Parameters
// are copied back to the host only if the server sent a hash of them for comparison.
//
// Apply() waits until the GPU has written the new parameters. Kernels that the caller launches
// later, on any stream, therefore read the new parameters.
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
#include "common/model/partition.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Not thread-safe.
class DeviceParameters final : public ParameterMemory {
 public:
  // Allocates the parameters, initially all 0. PARTITION must outlive the object. Errors: CUDA
  // errors.
  static absl::StatusOr<std::unique_ptr<DeviceParameters>> Make(const Partition& partition);

  // Returns the memory of TENSOR on the GPU, which begins at a multiple of 256 bytes.
  std::span<float> tensor(uint32_t tensor) override { return tensors_[tensor]; }
  absl::Status Fill(std::span<const std::span<const float>> values) override;
  ByteChain SeedPayload(ShardId shard) const override;
  absl::StatusOr<uint64_t> Apply(const ParameterChange& change) override;

 private:
  explicit DeviceParameters(const Partition& partition);

  kernels::cuda::Status Open();
  kernels::cuda::Status Upload();
  // Launches the application of CHANGE and, if CHANGE requests a hash, the copy of the shard's new
  // values to on_host_.
  kernels::cuda::Status Launch(const ParameterChange& change);
  kernels::cuda::Status Decode(const ParameterChange& change, std::span<float> values);
  // Records that a server has changed SHARD. Frees the initial values when servers have changed
  // every shard.
  void ForgetInitial(ShardId shard);

  const Partition& partition_;
  kernels::cuda::Stream stream_;
  kernels::cuda::DeviceBuffer<float> memory_;
  std::vector<std::span<float>> tensors_;
  PayloadStage stage_;
  kernels::cuda::DeviceBuffer<float> gathered_;  // contiguous copy of a shard that spans tensors
  kernels::cuda::PinnedBuffer<float> on_host_;   // a shard's new values, to be hashed

  // A copy, in host memory, of the values that Fill() set; used by SeedPayload().
  std::vector<std::vector<float>> initial_;
  std::vector<bool> changed_;  // true for shards that a server has changed
  size_t unchanged_count_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_PARAMETERS_H_
