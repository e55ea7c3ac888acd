// DeviceParameters: the ParameterMemory of a GPU. Answers cross the bus as short as they came over
// the wire, or nearly (device_decode.h), and are decoded there. Values come back only to be hashed,
// where a server said what they hash to.
//
// Every call of Apply waits until its values are there: whatever is launched later reads them.
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
  // Zeros. PARTITION outlives this. Errors: the device's.
  static absl::StatusOr<std::unique_ptr<DeviceParameters>> Make(const Partition& partition);

  // On the device, from a multiple of 256 bytes on.
  std::span<float> tensor(uint32_t tensor) override { return tensors_[tensor]; }
  absl::Status Fill(std::span<const std::span<const float>> values) override;
  ByteChain SeedPayload(ShardId shard) const override;
  absl::StatusOr<uint64_t> Apply(const ParameterChange& change) override;

 private:
  explicit DeviceParameters(const Partition& partition);

  kernels::cuda::Status Open();
  kernels::cuda::Status Upload();
  // All of Apply, with a copy of the values to the host if they are to be hashed.
  kernels::cuda::Status Launch(const ParameterChange& change);
  kernels::cuda::Status Decode(const ParameterChange& change, std::span<float> values);
  void ForgetInitial(ShardId shard);

  const Partition& partition_;
  kernels::cuda::Stream stream_;
  kernels::cuda::DeviceBuffer<float> memory_;
  std::vector<std::span<float>> tensors_;
  PayloadStage stage_;
  kernels::cuda::DeviceBuffer<float> gathered_;  // a shard of several segments
  kernels::cuda::PinnedBuffer<float> on_host_;   // what is hashed

  // What it was filled with, until all shards have come from the servers.
  std::vector<std::vector<float>> initial_;
  std::vector<bool> came_;  // per shard
  size_t to_come_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_PARAMETERS_H_
