#include "client/gpu/gpu.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "client/gpu/copying_shard_encoder.h"
#include "client/gpu/device_codec.h"
#include "client/gpu/device_parameters.h"
#include "client/gpu/device_shard_encoder.h"
#include "client/gpu/device_status.h"
#include "client/push_schedule.h"
#include "kernels/cuda/device.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

namespace {

// Empty, or why the pushes of OPTIONS are not encoded on a GPU, for a person.
std::string WhyOnHost(const ClientOptions& options) {
  if (options.choose.has_value()) return "the push codec is chosen as the run goes";
  for (const CodecSpec& spec : {options.push, options.warmup.first}) {
    for (const CodecSpec& part : {spec, VectorSpec(spec)}) {
      const absl::Status made = DeviceCodec::Make(part).status();
      if (absl::IsUnimplemented(made)) return std::string(made.message());
    }
  }
  return "";
}

}  // namespace

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
  if (const std::string why = WhyOnHost(options); !why.empty()) {
    LOG(WARNING) << name_ << ": gradients are copied to the host and encoded there: " << why;
    return CopyingShardEncoder::Make(partition, options);
  }
  return DeviceShardEncoder::Make(partition, options);
}

}  // namespace thinwire::client::gpu
