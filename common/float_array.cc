#include "common/float_array.h"

#include <new>

#include "absl/base/config.h"
#include "common/huge_page_arena.h"

namespace thinwire {
namespace {

// Below it an array has so few pages that a processor remembers where they are.
constexpr size_t kLeastArray = size_t{64} << 10;

// AddressSanitizer knows where an array of the heap ends.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr bool kFromHeap = true;
#else
constexpr bool kFromHeap = false;
#endif

bool IsSmall(size_t bytes) { return kFromHeap || bytes < kLeastArray; }

HugePageArena& Arena() {
  // Arrays may outlive whatever is destroyed at exit.
  static HugePageArena& arena = *new HugePageArena;
  return arena;
}

}  // namespace

void* TakeArray(size_t bytes) { return IsSmall(bytes) ? operator new(bytes) : Arena().Take(bytes); }

void GiveBackArray(void* array, size_t bytes) {
  if (IsSmall(bytes)) return operator delete(array);
  Arena().GiveBack(array, bytes);
}

BufferPool::Memory AllocateArray(size_t bytes) {
  return {static_cast<std::byte*>(TakeArray(bytes)),
          [bytes](std::byte* array) { GiveBackArray(array, bytes); }};
}

}  // namespace thinwire
