#include "client/gpu/gpu.h"

#include "absl/strings/str_cat.h"
#include "client/gpu/device_parameters.h"
#include "client/gpu/device_shard_encoder.h"
#include "client/gpu/device_status.h"
#include "kernels/cuda/runtime/device.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

absl::StatusOr<std::unique_ptr<const Gpu>> Gpu::Open(int number) {
  const int count = cuda::DeviceCount();
  if (count == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuda:", number,
                     ": this machine has no GPU that CUDA can use (no driver, or "
                     "one that is older than this build's CUDA, or none visible)"));
  }
  if (number < 0 || number >= count) {
    return absl::FailedPreconditionError(absl::StrCat("cuda:", number, ": want a GPU below ", count,
                                                      ", the number that CUDA can use"));
  }
  if (absl::Status s = ToStatus(cuda::UseDevice(number)); !s.ok()) return s;
  return std::unique_ptr<const Gpu>(
      new Gpu(number, absl::StrCat("cuda:", number, " (", cuda::DeviceName(), ")")));
}

absl::Status Gpu::Use() const { return ToStatus(cuda::UseDevice(number_)); }

absl::StatusOr<std::unique_ptr<ParameterMemory>> Gpu::MakeParameters(
    const Partition& partition) const {
  return DeviceParameters::Make(partition);
}

absl::StatusOr<std::unique_ptr<ShardEncoder>> Gpu::MakeEncoder(const Partition& partition,
                                                               const ClientOptions& options) const {
  return DeviceShardEncoder::Make(partition, options);
}

}  // namespace thinwire::client::gpu
