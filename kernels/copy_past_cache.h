// CopyPastCache: a copy whose destination is not brought into the cache, for arrays so large that
// nobody reads them again before they would have left it. A line is then written without being read
// first, which is half of what an ordinary copy moves.
//
// Vectors: Highway, by the widest instructions of the machine that runs it. A pure function:
// thread-safe.
#ifndef THINWIRE_KERNELS_COPY_PAST_CACHE_H_
#define THINWIRE_KERNELS_COPY_PAST_CACHE_H_

#include <span>

namespace thinwire::kernels {

// to = from. REQUIRES: from.size() == to.size(), apart from each other.
void CopyPastCache(std::span<const float> from, std::span<float> to);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_COPY_PAST_CACHE_H_
