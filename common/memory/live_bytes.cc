#include "common/memory/live_bytes.h"

#include <atomic>

namespace {

std::atomic<size_t> peak_bytes = 0;

void RaisePeak(size_t bytes) {
  size_t peak = peak_bytes;
  while (peak < bytes && !peak_bytes.compare_exchange_weak(peak, bytes)) {
  }
}

}  // namespace

namespace thinwire {

size_t PeakBytes() { return peak_bytes; }

void ResetPeakBytes() { peak_bytes = LiveBytes(); }

}  // namespace thinwire

#ifdef __SANITIZE_ADDRESS__

// AddressSanitizer's own operator new takes precedence over a replacement in a shared library. The
// declarations are those of <sanitizer/allocator_interface.h>, which gcc does not install.
extern "C" size_t __sanitizer_get_current_allocated_bytes();
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));

namespace {

void Allocated(const volatile void*, size_t) {
  RaisePeak(__sanitizer_get_current_allocated_bytes());
}
void Freed(const volatile void*) {}

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(Allocated, Freed);

}  // namespace

namespace thinwire {

size_t LiveBytes() { return __sanitizer_get_current_allocated_bytes(); }

}  // namespace thinwire

#else

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> live_bytes = 0;

void* Counted(void* memory) {
  if (memory == nullptr) std::abort();
  const size_t usable_bytes = malloc_usable_size(memory);
  RaisePeak(live_bytes.fetch_add(usable_bytes) + usable_bytes);
  return memory;
}

void Free(void* memory) {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

// The other forms of operator new and delete call these.
void* operator new(size_t size) { return Counted(std::malloc(std::max<size_t>(size, 1))); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  return Counted(std::aligned_alloc(unit, (std::max<size_t>(size, 1) + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }

namespace thinwire {

size_t LiveBytes() { return live_bytes; }

}  // namespace thinwire

#endif  // __SANITIZE_ADDRESS__
