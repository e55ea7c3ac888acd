// DeviceBuffer: owns an array in the memory of the GPU. PinnedBuffer: owns one in memory of the
// host that the GPU reads and writes by itself, so that a copy neither stages nor waits. Both begin
// at 256 bytes, and what is in them at first is undefined. Giving an array back waits for the
// device, which may be using it: keep them. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_BUFFER_H_
#define THINWIRE_KERNELS_CUDA_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "kernels/cuda/status.h"

namespace thinwire::kernels::cuda {

struct OnDevice {
  static Status Allocate(size_t bytes, void*& memory);
  static void Free(void* memory);
};

struct OnHostPinned {
  static Status Allocate(size_t bytes, void*& memory);
  static void Free(void* memory);
};

template <typename T, typename Place>
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

  // Room for COUNT values in place of what was there; after an error for none.
  Status Allocate(size_t count) {
    Free();
    if (count == 0) return {};
    if (count > SIZE_MAX / sizeof(T)) return Place::Allocate(SIZE_MAX, memory_);
    const Status status = Place::Allocate(count * sizeof(T), memory_);
    if (status.ok()) count_ = count;
    return status;
  }

  std::span<T> span() { return {static_cast<T*>(memory_), count_}; }
  std::span<const T> span() const { return {static_cast<const T*>(memory_), count_}; }
  T* data() { return span().data(); }
  size_t size() const { return count_; }

 private:
  void Free() {
    if (memory_ != nullptr) Place::Free(memory_);
    memory_ = nullptr;
    count_ = 0;
  }

  void* memory_ = nullptr;
  size_t count_ = 0;
};

template <typename T>
using DeviceBuffer = Buffer<T, OnDevice>;
template <typename T>
using PinnedBuffer = Buffer<T, OnHostPinned>;

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BUFFER_H_
