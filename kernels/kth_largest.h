// The k-th largest magnitude of an array, by bisection: each step counts the
// values at or above a magnitude, 31 steps at most. Pure functions:
// thread-safe.
//
// A step is one pass that only reads and compares, so for the few thousand
// values that a selection is left with, in the first cache, it is several times
// as fast as sorting by digits.
#ifndef THINWIRE_KERNELS_KTH_LARGEST_H_
#define THINWIRE_KERNELS_KTH_LARGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::kernels {

// A magnitude (its bits), and how many of the array are above it.
struct KthMagnitude {
  uint32_t bits = 0;
  size_t above_count = 0;

  bool operator==(const KthMagnitude &) const = default;
};

// The K-th largest magnitude of VALUES, a NaN being above an infinity.
// REQUIRES: 1 <= k <= values.size() < 2^31; no magnitude is below SMALLEST,
// which is a start for the search.
KthMagnitude KthLargest(std::span<const float> values, size_t k, uint32_t smallest = 0);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_KTH_LARGEST_H_
