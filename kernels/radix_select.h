// The k-th largest of an array of magnitudes, in linear time: by their upper 11 bits, then 10,
// then 10. Pure function: thread-safe.
#ifndef THINWIRE_KERNELS_RADIX_SELECT_H_
#define THINWIRE_KERNELS_RADIX_SELECT_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::kernels {

// A value of the array, and how many of the array are above it.
struct KthValue {
  uint32_t value = 0;
  size_t above_count = 0;

  bool operator==(const KthValue&) const = default;
};

// The K-th largest of VALUES, which are overwritten. REQUIRES: 1 <= k <= values.size(); all values
// < 2^31.
KthValue KthLargest(std::span<uint32_t> values, size_t k);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_RADIX_SELECT_H_
