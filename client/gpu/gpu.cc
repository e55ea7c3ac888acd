#include "client/gpu/gpu.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/gpu/device_parameters.h"
#include "client/gpu/device_shard_encoder.h"
#include "client/gpu/device_status.h"
#include "common/base/status_macros.h"
#include "kernels/cuda/runtime/device.h"

namespace thinwire {
namespace {

namespace cuda = kernels::cuda;
using client::gpu::ToStatus;

// Immutable. Thread-safe.
class Gpu final : public Device {
 public:
  Gpu(int number, std::string name) : number_(number), name_(std::move(name)) {}

  std::string name() const override { return name_; }

  absl::Status Use() const override { return ToStatus(cuda::UseDevice(number_)); }

  absl::StatusOr<std::unique_ptr<client::ParameterMemory>> MakeParameters(
      const Partition& partition) const override {
    return client::gpu::DeviceParameters::Make(partition);
  }

  absl::StatusOr<std::unique_ptr<client::ShardEncoder>> MakeEncoder(
      const Partition& partition, const ClientOptions& options) const override {
    return client::gpu::DeviceShardEncoder::Make(partition, options);
  }

 private:
  const int number_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Device>> OpenGpu(int number) {
  const int count = cuda::DeviceCount();
  if (count == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuda:", number,
                     ": this machine has no GPU that CUDA can use (no driver, a driver older than "
                     "this build's CUDA, or no visible GPU)"));
  }
  if (number < 0 || number >= count) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cuda:", number, ": no such GPU (expected a number below ", count, ", got ", number, ")"));
  }
  RETURN_IF_ERROR(ToStatus(cuda::UseDevice(number)));
  return std::make_unique<const Gpu>(number,
                                     absl::StrCat("cuda:", number, " (", cuda::DeviceName(), ")"));
}

}  // namespace thinwire
