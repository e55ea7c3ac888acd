// CopyPastCache() copies an array with non-temporal stores. They write a cache line of the
// destination without reading the line first and without caching it, which halves the memory
// traffic of the copy. Intended for arrays so large that the cache would evict them before they are
// read again. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_COPY_PAST_CACHE_H_
#define THINWIRE_KERNELS_COPY_PAST_CACHE_H_

#include <span>

namespace thinwire::kernels {

// Copies FROM to TO. REQUIRES: from.size() == to.size(); the arrays do not overlap.
void CopyPastCache(std::span<const float> from, std::span<float> to);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_COPY_PAST_CACHE_H_
