// HugePageArena: a memory resource for large arrays that live as long as a job, backed by huge
// pages.
//
// The arena maps memory in multiples of the huge page size and requests huge pages with madvise. If
// the kernel has no huge page, it uses small pages, which are slower but otherwise equivalent.
// Arrays share huge pages: a shard of the maximum size fills half a huge page.
//
// Thread-safe.
#ifndef THINWIRE_COMMON_MEMORY_HUGE_PAGE_ARENA_H_
#define THINWIRE_COMMON_MEMORY_HUGE_PAGE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>

#include "absl/base/config.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

// Allocates by first fit, on page boundaries. A mapping is unmapped as soon as it contains no
// array. Arrays that are still allocated when the arena is destroyed stay mapped.
//
// allocate() throws std::bad_alloc if there is no memory.
class HugePageArena final : public std::pmr::memory_resource {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kPage = 4096;
  static constexpr size_t kSmallestMapping = 16 * kHugePage;
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  // With AddressSanitizer, all arrays come from the heap, where AddressSanitizer checks their
  // bounds.
  static constexpr size_t kSmallestArray = SIZE_MAX;
#else
  // The smallest array in bytes that the arena maps. Smaller arrays gain nothing from huge pages:
  // the processor's TLB holds the few small pages of such an array.
  static constexpr size_t kSmallestArray = size_t{64} << 10;
#endif

  // Creates an arena. Arrays of fewer than SMALLEST_ARRAY bytes come from the heap.
  explicit HugePageArena(size_t smallest_array = kSmallestArray)
      : smallest_array_(smallest_array) {}

  size_t mapped_bytes() const;

 private:
  using Ranges = std::map<std::byte*, size_t>;  // start of each range -> its length in bytes

  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* array, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  bool ComesFromHeap(size_t bytes, size_t alignment) const {
    return bytes < smallest_array_ || alignment > kPage;
  }
  Ranges::iterator Map(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t smallest_array_;
  mutable absl::Mutex mu_;
  Ranges mappings_ ABSL_GUARDED_BY(mu_);
  Ranges free_ ABSL_GUARDED_BY(mu_);  // adjacent free ranges of one mapping are merged
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_HUGE_PAGE_ARENA_H_
