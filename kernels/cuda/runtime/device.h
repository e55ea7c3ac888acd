// Selects and describes the GPUs of this process. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_DEVICE_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_DEVICE_H_

#include <cstddef>
#include <string>

#include "kernels/cuda/runtime/status.h"

namespace thinwire::kernels::cuda {

// Returns the number of GPUs this process can use; 0 if there is no driver.
int DeviceCount();

// Makes GPU NUMBER (from 0) the current device of the calling thread.
Status UseDevice(int number);

// These functions return the name and the memory size of the current device of the calling thread.
// Without a GPU they return "" and 0.
std::string DeviceName();
size_t DeviceMemoryBytes();

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_DEVICE_H_
