// Owners of GPU memory and asynchronous copies.
//
//   DeviceBuffer<T>   an array in GPU memory
//   PinnedBuffer<T>   an array in page-locked host memory, which the GPU accesses directly
//
// Copies to and from a PinnedBuffer need no staging buffer and do not block the host. Arrays begin
// at a multiple of 256 bytes and are not initialized. Freeing an array blocks until the GPU is
// idle, so callers should reuse buffers. Buffers are not thread-safe; the copy functions are.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_MEMORY_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

struct DeviceMemory {
  static Status Allocate(size_t bytes, void*& memory);
  static void Free(void* memory);
};

struct PinnedMemory {
  static Status Allocate(size_t bytes, void*& memory);
  static void Free(void* memory);
};

template <typename T, typename Memory>
class Buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() { Free(); }

  // Replaces the array by a new one of COUNT values. On error the buffer is empty.
  Status Allocate(size_t count) {
    Free();
    if (count == 0) return {};
    if (count > SIZE_MAX / sizeof(T)) return Memory::Allocate(SIZE_MAX, memory_);
    const Status status = Memory::Allocate(count * sizeof(T), memory_);
    if (status.ok()) count_ = count;
    return status;
  }

  // Ensures that size() >= COUNT. If the array is too small, allocates a new one and loses the
  // contents.
  Status Reserve(size_t count) { return size() >= count ? Status() : Allocate(count); }

  std::span<T> span() { return {static_cast<T*>(memory_), count_}; }
  std::span<const T> span() const { return {static_cast<const T*>(memory_), count_}; }
  T* data() { return span().data(); }
  size_t size() const { return count_; }

 private:
  void Free() {
    if (memory_ != nullptr) Memory::Free(memory_);
    memory_ = nullptr;
    count_ = 0;
  }

  void* memory_ = nullptr;
  size_t count_ = 0;
};

template <typename T>
using DeviceBuffer = Buffer<T, DeviceMemory>;
template <typename T>
using PinnedBuffer = Buffer<T, PinnedMemory>;

// The copy functions launch `to = from` on STREAM and return at once. Until the stream has executed
// the copy, both arrays must stay valid, and FROM must not change. A copy from or to pageable host
// memory is also correct, but may block the host. REQUIRES: from.size() == to.size().

Status CopyBytesToDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream);
Status CopyBytesToHost(std::span<const std::byte> from, std::span<std::byte> to,
                       const Stream& stream);
Status CopyBytesOnDevice(std::span<const std::byte> from, std::span<std::byte> to,
                         const Stream& stream);

template <typename T>
Status CopyToDevice(std::type_identity_t<std::span<const T>> from, std::span<T> to,
                    const Stream& stream) {
  return CopyBytesToDevice(std::as_bytes(from), std::as_writable_bytes(to), stream);
}

template <typename T>
Status CopyToHost(std::type_identity_t<std::span<const T>> from, std::span<T> to,
                  const Stream& stream) {
  return CopyBytesToHost(std::as_bytes(from), std::as_writable_bytes(to), stream);
}

template <typename T>
Status CopyOnDevice(std::type_identity_t<std::span<const T>> from, std::span<T> to,
                    const Stream& stream) {
  return CopyBytesOnDevice(std::as_bytes(from), std::as_writable_bytes(to), stream);
}

// Launches a kernel that sets all BYTES, an array in GPU memory, to 0.
Status Clear(std::span<std::byte> bytes, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_MEMORY_H_
