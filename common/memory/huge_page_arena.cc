#include "common/memory/huge_page_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>

namespace thinwire {
namespace {

size_t RoundUp(size_t bytes, size_t unit) {
  if (bytes > SIZE_MAX - unit) throw std::bad_alloc();
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

HugePageArena::Ranges::iterator HugePageArena::Map(size_t bytes) {
  const size_t length = std::max(RoundUp(bytes, kHugePage), kSmallestMapping);
  // mmap aligns a mapping to small pages only. A mapping with one additional huge page always
  // contains a range of the required length that is aligned to huge pages.
  const size_t around = length + kHugePage;
  void* const mapped =
      mmap(nullptr, around, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  std::byte* const from = static_cast<std::byte*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(from) % kHugePage;
  if (before > 0) munmap(from, before);
  if (before < kHugePage) munmap(from + before + length, kHugePage - before);
  // If madvise fails, the pages remain small, which is slower but correct.
  madvise(from + before, length, MADV_HUGEPAGE);
  mappings_.emplace(from + before, length);
  return free_.emplace(from + before, length).first;
}

void* HugePageArena::do_allocate(size_t bytes, size_t alignment) {
  if (ComesFromHeap(bytes, alignment)) {
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  bytes = RoundUp(bytes, kPage);
  absl::MutexLock lock(&mu_);
  auto range = std::ranges::find_if(free_, [&](const auto& free) { return free.second >= bytes; });
  if (range == free_.end()) range = Map(bytes);
  const auto [from, length] = *range;
  free_.erase(range);
  if (length > bytes) free_.emplace(from + bytes, length - bytes);
  return from;
}

void HugePageArena::do_deallocate(void* array, size_t bytes, size_t alignment) {
  if (ComesFromHeap(bytes, alignment)) {
    return std::pmr::new_delete_resource()->deallocate(array, bytes, alignment);
  }
  absl::MutexLock lock(&mu_);
  const auto range = free_.emplace(static_cast<std::byte*>(array), RoundUp(bytes, kPage)).first;
  const auto next = std::next(range);
  const auto touches = [&](Ranges::iterator before, Ranges::iterator after) {
    mu_.AssertHeld();
    return before->first + before->second == after->first && !mappings_.contains(after->first);
  };
  if (next != free_.end() && touches(range, next)) {
    range->second += next->second;
    free_.erase(next);
  }
  auto whole = range;
  if (range != free_.begin() && touches(std::prev(range), range)) {
    whole = std::prev(range);
    whole->second += range->second;
    free_.erase(range);
  }
  const auto mapping = mappings_.find(whole->first);
  if (mapping == mappings_.end() || mapping->second != whole->second) return;
  munmap(mapping->first, mapping->second);
  mappings_.erase(mapping);
  free_.erase(whole);
}

size_t HugePageArena::mapped_bytes() const {
  absl::MutexLock lock(&mu_);
  size_t bytes = 0;
  for (const auto& [from, length] : mappings_) bytes += length;
  return bytes;
}

}  // namespace thinwire
