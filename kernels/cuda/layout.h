// Layout: arrays one behind the other in memory that a caller lends, each from a multiple of 16
// bytes on. Without memory it only finds how many bytes they take. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_LAYOUT_H_
#define THINWIRE_KERNELS_CUDA_LAYOUT_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels::cuda {

class Layout {
 public:
  // REQUIRES: MEMORY is null, or begins at a multiple of 16.
  explicit Layout(std::byte* memory) : memory_(memory) {}

  // The next COUNT values; an empty span without memory.
  template <typename T>
  std::span<T> Place(size_t count) {
    static_assert(alignof(T) <= kAlignment);
    std::byte* const begin = memory_ + (memory_ == nullptr ? 0 : bytes_);
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (memory_ == nullptr) return {};
    return {reinterpret_cast<T*>(begin), count};
  }

  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 16;

  std::byte* const memory_;
  size_t bytes_ = 0;
};

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_LAYOUT_H_
