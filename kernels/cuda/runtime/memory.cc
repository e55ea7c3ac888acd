#include "kernels/cuda/runtime/memory.h"

#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {
namespace {

// Clears the error of a failed allocation, which the next launch would report otherwise.
Status AllocationStatus(const char* operation, cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return {operation, error};
}

Status Copy(const char* operation, cudaMemcpyKind kind, std::span<const std::byte> from,
            std::span<std::byte> to, const Stream& stream) {
  if (to.empty()) return {};
  return {operation, cudaMemcpyAsync(to.data(), from.data(), to.size(), kind, stream.handle())};
}

}  // namespace

Status DeviceMemory::Allocate(size_t bytes, void*& memory) {
  return AllocationStatus("allocate device memory", cudaMalloc(&memory, bytes));
}

void DeviceMemory::Free(void* memory) { (void)cudaFree(memory); }

Status PinnedMemory::Allocate(size_t bytes, void*& memory) {
  return AllocationStatus("allocate pinned memory", cudaMallocHost(&memory, bytes));
}

void PinnedMemory::Free(void* memory) { (void)cudaFreeHost(memory); }

Status CopyBytesToDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream) {
  return Copy("copy to the device", cudaMemcpyHostToDevice, from, to, stream);
}

Status CopyBytesToHost(std::span<const std::byte> from, std::span<std::byte> to,
                       const Stream& stream) {
  return Copy("copy to the host", cudaMemcpyDeviceToHost, from, to, stream);
}

Status CopyBytesOnDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream) {
  return Copy("copy on the device", cudaMemcpyDeviceToDevice, from, to, stream);
}

Status Clear(std::span<std::byte> bytes, const Stream& stream) {
  if (bytes.empty()) return {};
  return {"clear device memory", cudaMemsetAsync(bytes.data(), 0, bytes.size(), stream.handle())};
}

}  // namespace thinwire::kernels::cuda
