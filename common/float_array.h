// FloatArray: a std::vector<float> in huge pages, for what is held for every value of a shard:
// masters, slots, sums and residuals.
//
// A pass over such arrays, and far more a few values added at scattered places, wait for the
// processor to find the pages; a huge page is found once for 512 small ones.
#ifndef THINWIRE_COMMON_FLOAT_ARRAY_H_
#define THINWIRE_COMMON_FLOAT_ARRAY_H_

#include <cstddef>
#include <vector>

#include "common/buffer_pool.h"

namespace thinwire {

// From the process's arena if an array is large enough to gain by it, else from the heap.
void* TakeArray(size_t bytes);
void GiveBackArray(void* array, size_t bytes);

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t count) { return static_cast<T*>(TakeArray(count * sizeof(T))); }
  void deallocate(T* array, size_t count) { GiveBackArray(array, count * sizeof(T)); }

  template <typename U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }
};

using FloatArray = std::vector<float, HugePageAllocator<float>>;

// For a BufferPool of arrays.
BufferPool::Memory AllocateArray(size_t bytes);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FLOAT_ARRAY_H_
