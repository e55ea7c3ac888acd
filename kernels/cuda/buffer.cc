#include "kernels/cuda/buffer.h"

#include "kernels/cuda/runtime.h"

namespace thinwire::kernels::cuda {
namespace {

// An allocation that failed is no error of the next launch.
Status Allocated(const char* attempt, cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return {attempt, error};
}

}  // namespace

Status OnDevice::Allocate(size_t bytes, void*& memory) {
  return Allocated("allocate on the device", cudaMalloc(&memory, bytes));
}

void OnDevice::Free(void* memory) { (void)cudaFree(memory); }

Status OnHostPinned::Allocate(size_t bytes, void*& memory) {
  return Allocated("allocate pinned memory", cudaMallocHost(&memory, bytes));
}

void OnHostPinned::Free(void* memory) { (void)cudaFreeHost(memory); }

}  // namespace thinwire::kernels::cuda
