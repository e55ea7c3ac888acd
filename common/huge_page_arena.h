// HugePageArena: memory from mappings that are whole huge pages.
//
// The kernel is asked for huge pages with madvise and may say no: then pages are small, and nothing
// else differs. Arrays share pages: one of a default shard is half of one.
//
// Thread-safe.
#ifndef THINWIRE_COMMON_HUGE_PAGE_ARENA_H_
#define THINWIRE_COMMON_HUGE_PAGE_ARENA_H_

#include <cstddef>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace thinwire {

// Gives out ranges of mappings that are whole huge pages, the first that fits, and gives a mapping
// back to the system when nothing of it is used. What is used when it ends stays
// mapped. Made for arrays that live as long as a job.
class HugePageArena {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;
  static constexpr size_t kPage = 4096;               // where ranges begin
  static constexpr size_t kMapping = 16 * kHugePage;  // at least

  // BYTES, of any content, at a page's begin. Throws std::bad_alloc, as new does. REQUIRES:
  // bytes > 0.
  void* Take(size_t bytes);
  // REQUIRES: Take(bytes) gave it.
  void GiveBack(void* array, size_t bytes);

  size_t mapped_bytes() const;

 private:
  using Ranges = std::map<std::byte*, size_t>;  // from where, how long

  Ranges::iterator Map(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Ranges mappings_ ABSL_GUARDED_BY(mu_);
  Ranges free_ ABSL_GUARDED_BY(mu_);  // no two of a mapping touch
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_HUGE_PAGE_ARENA_H_
