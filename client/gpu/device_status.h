// Converts CUDA errors to absl::Status. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_
#define THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_

#include "absl/status/status.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

// Returns ResourceExhausted if GPU or pinned memory ran out, Internal for all other errors. Example
// of a message: "CUDA: copy to the device: unspecified launch failure".
absl::Status ToStatus(const kernels::cuda::Status& status);

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_
