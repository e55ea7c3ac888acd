// Converts CUDA errors to absl::Status. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_
#define THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_

#include "absl/status/status.h"
#include "kernels/cuda/runtime/status.h"

namespace thinwire::client::gpu {

// Returns ResourceExhausted if GPU memory or pinned memory was exhausted, and Internal for all
// other errors. Example of a message: "CUDA: copy to the device: unspecified launch failure".
absl::Status ToStatus(const kernels::cuda::Status& status);

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_STATUS_H_
