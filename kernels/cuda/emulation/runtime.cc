#include "kernels/cuda/emulation/runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

// An emulated stream: the queue of launches that have not run, and the number of launches that have
// run.
struct CUstream_st {
  void RunUntil(size_t end) {
    while (run_count < end) {
      const std::function<void()> next = std::move(pending.front());
      pending.pop_front();
      next();
      ++run_count;
    }
  }
  size_t launched_count() const { return run_count + pending.size(); }

  std::deque<std::function<void()>> pending;
  size_t run_count = 0;
};

// An emulated event: a position in a stream, given as a number of launches.
struct CUevent_st {
  CUstream_st* stream = nullptr;
  size_t mark = 0;
};

namespace {

constexpr size_t kDeviceBytes = 256 << 20;
constexpr size_t kAlignment = 256;
constexpr int kNoise = 0xA5;

// The state of the emulated GPU. The program has only one.
struct Device {
  std::mutex mu;
  std::set<CUstream_st*> streams;
  cudaError_t last_error = cudaSuccess;
  uint64_t launch_count = 0;
  std::optional<uint64_t> launches_until_break;  // nullopt: the GPU never breaks

  bool broken() const { return launches_until_break == 0u; }
};

Device& TheDevice() {
  static Device device;
  return device;
}

std::unique_lock<std::mutex> Lock() { return std::unique_lock(TheDevice().mu); }

cudaError_t RecordError(cudaError_t error) {
  if (error != cudaSuccess) TheDevice().last_error = error;
  return error;
}

cudaError_t Enqueue(cudaStream_t stream, std::function<void()> work) {
  if (!TheDevice().streams.contains(stream)) return RecordError(cudaErrorInvalidResourceHandle);
  if (TheDevice().broken()) return RecordError(cudaErrorLaunchFailure);
  if (TheDevice().launches_until_break.has_value()) --*TheDevice().launches_until_break;
  stream->pending.push_back(std::move(work));
  return cudaSuccess;
}

cudaError_t Allocate(void** memory, size_t bytes) {
  *memory = nullptr;
  if (bytes > kDeviceBytes) return RecordError(cudaErrorMemoryAllocation);
  if (posix_memalign(memory, kAlignment, bytes) != 0) return RecordError(cudaErrorMemoryAllocation);
  std::memset(*memory, kNoise, bytes);
  return cudaSuccess;
}

// Frees device memory. Completes all launches first, because they may use the memory. NVIDIA's
// cudaFree() also waits for them.
cudaError_t Free(void* memory) {
  for (CUstream_st* stream : TheDevice().streams) stream->RunUntil(stream->launched_count());
  std::free(memory);
  return cudaSuccess;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  const auto lock = Lock();
  return std::exchange(TheDevice().last_error, cudaSuccess);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  const auto lock = Lock();
  return device == 0 ? cudaSuccess : RecordError(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "emulation");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = *total_bytes = kDeviceBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  const auto lock = Lock();
  return Allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  const auto lock = Lock();
  return Free(memory);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const auto lock = Lock();
  return Enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  const auto lock = Lock();
  return Enqueue(stream, [=] { std::memset(to, byte, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto lock = Lock();
  *stream = new CUstream_st;
  TheDevice().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto lock = Lock();
  if (TheDevice().streams.erase(stream) == 0) return RecordError(cudaErrorInvalidResourceHandle);
  stream->RunUntil(stream->launched_count());
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const auto lock = Lock();
  if (!TheDevice().streams.contains(stream)) return RecordError(cudaErrorInvalidResourceHandle);
  stream->RunUntil(stream->launched_count());
  return TheDevice().broken() ? RecordError(cudaErrorLaunchFailure) : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto lock = Lock();
  if (event->stream == nullptr) return cudaSuccess;
  return Enqueue(stream, [other = event->stream, mark = event->mark] { other->RunUntil(mark); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const auto lock = Lock();
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const auto lock = Lock();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto lock = Lock();
  if (!TheDevice().streams.contains(stream)) return RecordError(cudaErrorInvalidResourceHandle);
  *event = {stream, stream->launched_count()};
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const auto lock = Lock();
  if (event->stream != nullptr) event->stream->RunUntil(event->mark);
  return TheDevice().broken() ? RecordError(cudaErrorLaunchFailure) : cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto lock = Lock();
  const bool reached = event->stream == nullptr || event->stream->run_count >= event->mark;
  return reached ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (cudaEventQuery(begin) != cudaSuccess || cudaEventQuery(end) != cudaSuccess) {
    return RecordError(cudaErrorNotReady);
  }
  *milliseconds = 0;
  return cudaSuccess;
}

namespace thinwire::kernels::cuda::emulation {

void Launch(cudaStream_t stream, unsigned block_count, unsigned thread_count,
            std::function<void()> kernel) {
  const auto lock = Lock();
  const uint64_t seed = ++TheDevice().launch_count;
  (void)Enqueue(stream, [=, kernel = std::move(kernel)] {
    Block::RunGrid(block_count, thread_count, seed, kernel);
  });
}

void BreakAfter(std::optional<uint64_t> count) {
  const auto lock = Lock();
  TheDevice().launches_until_break = count;
}

}  // namespace thinwire::kernels::cuda::emulation
