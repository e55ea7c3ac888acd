// What went wrong on a GPU, as the client's other errors are.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_
#define THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_

#include "absl/status/status.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

// ResourceExhausted where memory has run out, Internal for all else: "CUDA: copy to the device:
// unspecified launch failure". Thread-safe.
absl::Status ToStatus(const kernels::cuda::Status& status);

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_
