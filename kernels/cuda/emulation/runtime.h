// The part of the CUDA runtime that thinwire uses, on the host: the memory of the device is the
// heap's, filled with noise, and what is launched on a stream runs only when somebody waits for it,
// so a host that reads too early is found out. Names and meanings are NVIDIA's. Only tests use it.
// Thread-safe: one call at a time.
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

// What <<<block_count, thread_count, 0, stream>>> does.
void Launch(cudaStream_t stream, unsigned block_count, unsigned thread_count,
            std::function<void()> kernel);

// After COUNT more kernels and copies the device breaks: from then on whatever is asked of a stream
// is an error, as after a kernel that wrote where it must not. Nothing: it is whole again.
void BreakAfter(std::optional<uint64_t> count);

}  // namespace thinwire::kernels::cuda::emulation

#endif  // THINWIRE_KERNELS_CUDA_EMULATION_RUNTIME_H_
