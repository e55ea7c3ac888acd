// Selects the k values of largest magnitude, exactly.
//
// Values are ordered by the 64-bit key (bits of |v|, ~index): among equal magnitudes the lower
// index wins, so every machine selects the same set; a NaN is larger than infinity. One pass
// collects all values at or above a threshold slightly below the k-th magnitude, and the k-th is
// found among these candidates. The threshold is predicted from the last selection:
//
//   t - clamp((t - c) (k + 64) / (n - k + 1), t / 256, t / 14)
//
// where the last selection collected n values from threshold c up and its k-th magnitude was t. It
// collects about 2 k values, however densely the values lie below the k-th (error feedback makes
// them dense there). Without a last selection, or if its prediction fails, the threshold is
// estimated from a sample; if that fails too, it is the k-th magnitude itself, found in several
// passes.
//
// Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_TOP_K_H_
#define THINWIRE_KERNELS_TOP_K_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/collect.h"

namespace thinwire::kernels {

// Writes the k = top.indices.size() largest of VALUES to TOP, in ascending order of their indices.
// THRESHOLD is the prediction of the last selection from the same array, or 0, and is replaced by
// the next prediction. It affects the time of a selection, never its result. REQUIRES:
// top.indices.size() == top.values.size() <= values.size() < 2^31.
void SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t& threshold);

// Computes values += gradient and selects from the sums. REQUIRES: gradient.size() ==
// values.size().
void AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                      const IndexedValues& top, uint32_t& threshold);

// The distance of the predicted threshold from the k-th magnitude t, as a fraction of t. With a
// smaller distance the k-th magnitude could not fall by the next selection; a larger one would not
// pay.
inline constexpr float kSmallestMargin = 1.0f / 256;
inline constexpr float kLargestMargin = 1.0f / 14;

// Returns the threshold for the next selection, given that this one found FOUND values from
// SMALLEST up, with the k-th magnitude KTH_BITS. From the same values it would collect about 2 k.
constexpr uint32_t NextThreshold(uint32_t smallest, size_t found, uint32_t kth_bits, size_t k) {
  const float kth = std::bit_cast<float>(kth_bits);
  const float margin = kth - std::bit_cast<float>(smallest);
  const float wanted = static_cast<float>(k + 64) / static_cast<float>(found - k + 1);
  const float next = kth - std::clamp(margin * wanted, kSmallestMargin * kth, kLargestMargin * kth);
  return std::max(MagnitudeBits(next), 1u);
}

// Returns the capacity of the candidate array. It suffices if the k-th magnitude rises by up to a
// third between two selections, as it does at the start of training.
constexpr size_t CandidateCapacity(size_t count, size_t k) { return std::min(count, 8 * k + 4096); }

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_TOP_K_H_
