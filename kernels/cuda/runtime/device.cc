#include "kernels/cuda/runtime/device.h"

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {

int DeviceCount() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();  // otherwise the next launch would report this error
  return 0;
}

Status UseDevice(int number) { return {"select a device", cudaSetDevice(number)}; }

std::string DeviceName() {
  int number = 0;
  cudaDeviceProp properties = {};
  if (DeviceCount() == 0 || cudaGetDevice(&number) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, number) != cudaSuccess) {
    return "";
  }
  return properties.name;
}

size_t DeviceMemoryBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  if (DeviceCount() == 0 || cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return 0;
  return total_bytes;
}

}  // namespace thinwire::kernels::cuda
