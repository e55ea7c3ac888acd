// WorkspaceLayout divides one block of memory into arrays, each at a multiple of 16 bytes. Without
// memory it only computes the total size. The same lines can therefore first compute the size and
// later divide the memory:
//
//   WorkspaceLayout layout(memory);            // nullptr: computes layout.bytes() only
//   counts = layout.Append<uint32_t>(tiles);
//   values = layout.Append<float>(capacity);
//
// Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_RUNTIME_WORKSPACE_LAYOUT_H_
#define THINWIRE_KERNELS_CUDA_RUNTIME_WORKSPACE_LAYOUT_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels::cuda {

class WorkspaceLayout {
 public:
  // REQUIRES: MEMORY is null or its address is a multiple of 16.
  explicit WorkspaceLayout(std::byte* memory) : memory_(memory) {}

  // Appends an array of COUNT values and returns it. Without memory, returns an empty span.
  template <typename T>
  std::span<T> Append(size_t count) {
    static_assert(alignof(T) <= kAlignment);
    std::byte* const begin = memory_ + (memory_ == nullptr ? 0 : bytes_);
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (memory_ == nullptr) return {};
    return {reinterpret_cast<T*>(begin), count};
  }

  // Returns the bytes of all arrays so far, including padding.
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 16;

  std::byte* const memory_;
  size_t bytes_ = 0;
};

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_RUNTIME_WORKSPACE_LAYOUT_H_
