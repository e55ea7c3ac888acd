// What there is to run on. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_DEVICE_H_
#define THINWIRE_KERNELS_CUDA_DEVICE_H_

#include <cstddef>
#include <string>

#include "kernels/cuda/status.h"

namespace thinwire::kernels::cuda {

// How many GPUs this process can use: 0 also where there is no driver.
int DeviceCount();

// Makes the GPU of this number the calling thread's, for all that it does from then on.
Status UseDevice(int number);

// Of the calling thread's GPU. Empty and 0 where there is none.
std::string DeviceName();
size_t DeviceMemoryBytes();

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_DEVICE_H_
