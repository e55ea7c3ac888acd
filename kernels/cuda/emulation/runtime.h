// Emulates, on the host, the part of the CUDA runtime API that thinwire uses. Names and semantics
// are NVIDIA's. Device memory is heap memory filled with arbitrary bytes. A launched kernel or copy
// runs only when the host waits for its stream, so code that reads a result too early fails its
// test. Used only by tests. Thread-safe: calls are serialized.
#ifndef THINWIRE_KERNELS_CUDA_EMULATION_RUNTIME_H_
#define THINWIRE_KERNELS_CUDA_EMULATION_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "kernels/cuda/emulation/device.h"

struct CUstream_st;
struct CUevent_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };

struct cudaDeviceProp {
  char name[64];
};

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);

cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

namespace thinwire::kernels::cuda::emulation {

// Launches KERNEL, as KERNEL<<<block_count, thread_count, 0, stream>>> does.
void Launch(cudaStream_t stream, unsigned block_count, unsigned thread_count,
            std::function<void()> kernel);

// Simulates a GPU that breaks: after COUNT more kernels and copies, every stream operation fails,
// as after an illegal memory access. BreakAfter(nullopt) repairs the GPU.
void BreakAfter(std::optional<uint64_t> count);

}  // namespace thinwire::kernels::cuda::emulation

#endif  // THINWIRE_KERNELS_CUDA_EMULATION_RUNTIME_H_
