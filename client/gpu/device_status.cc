#include "client/gpu/device_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::client::gpu {

absl::Status ToStatus(const kernels::cuda::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat("CUDA: ", status.message());
  if (status.error() == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(message);
  return absl::InternalError(message);
}

}  // namespace thinwire::client::gpu
