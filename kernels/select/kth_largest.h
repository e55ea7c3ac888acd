// KthLargest() finds the k-th largest magnitude of an array by bisection over the 31 bits of a
// magnitude. Each step counts, in one read-only pass, the values whose magnitude is at least a
// trial magnitude. For the few thousand candidates of a top-k selection, which fit in the
// first-level cache, bisection is several times as fast as radix sort. Uses Highway vector
// instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_SELECT_KTH_LARGEST_H_
#define THINWIRE_KERNELS_SELECT_KTH_LARGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::kernels {

struct KthMagnitude {
  uint32_t bits = 0;       // the k-th largest magnitude, as the bits of an fp32 number
  size_t above_count = 0;  // number of magnitudes above the k-th largest; less than k

  bool operator==(const KthMagnitude&) const = default;
};

// Returns the K-th largest magnitude of VALUES, where a NaN is larger than infinity. SMALLEST, the
// bits of an fp32 magnitude, is the lower bound of the search. REQUIRES: 1 <= k <= values.size() <
// 2^31; no magnitude in VALUES is below SMALLEST.
KthMagnitude KthLargest(std::span<const float> values, size_t k, uint32_t smallest = 0);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SELECT_KTH_LARGEST_H_
