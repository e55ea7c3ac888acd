// CollectFrom: where the next selection of the top k should begin, given the last (top_k.h has the
// formula). Pure function: thread-safe.
#ifndef THINWIRE_KERNELS_COLLECT_FROM_H_
#define THINWIRE_KERNELS_COLLECT_FROM_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/collect.h"

namespace thinwire::kernels {

// How far below the k-th the next selection collects, in parts of the k-th: less leaves no room for
// the k-th to fall, more is not worth it.
inline constexpr float kSmallestMargin = 1.0f / 256;
inline constexpr float kLargestMargin = 1.0f / 14;

// This one found FOUND values from SMALLEST up, and KTH_BITS to be the k-th: the next would find
// about twice k, were it to see the same values.
constexpr uint32_t CollectFrom(uint32_t smallest, size_t found, uint32_t kth_bits, size_t k) {
  const float kth = std::bit_cast<float>(kth_bits);
  const float margin = kth - std::bit_cast<float>(smallest);
  const float wanted = static_cast<float>(k + 64) / static_cast<float>(found - k + 1);
  const float next = kth - std::clamp(margin * wanted, kSmallestMargin * kth, kLargestMargin * kth);
  return std::max(MagnitudeBits(next), 1u);
}

// So much room that the k-th may rise by a third in one selection, as it does at first.
constexpr size_t RoomForCandidates(size_t count, size_t k) { return std::min(count, 8 * k + 4096); }

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_COLLECT_FROM_H_
