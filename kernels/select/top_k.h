// Selects the k values of largest magnitude, exactly.
//
// Values are ordered by the 64-bit key (bits of |v|, ~index): among equal magnitudes the lower
// index wins, so every machine selects the same set. A NaN is larger than infinity. One pass
// collects the candidates, which are all values whose magnitude is at least a threshold slightly
// below the k-th largest magnitude. The selection then finds the k-th largest magnitude among the
// candidates. The threshold is predicted from the previous selection:
//
//   t - clamp((t - c) (k + 64) / (n - k + 1), t / 256, t / 14)
//
// where t is the k-th largest magnitude of the previous selection, c its threshold and n the number
// of its candidates. The predicted threshold yields about 2 k candidates, even if error feedback
// leaves many values just below t. If there is no previous selection, or the prediction yields too
// few or too many candidates, the threshold is estimated from a sample. If the estimate fails too,
// the threshold is the k-th largest magnitude itself, found in several passes.
//
// Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_SELECT_TOP_K_H_
#define THINWIRE_KERNELS_SELECT_TOP_K_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/select/collect.h"

namespace thinwire::kernels {

// Writes the k = top.indices.size() largest of VALUES to TOP, in ascending order of their indices.
// THRESHOLD is the prediction that the previous selection from the same array stored, or 0 if there
// was none. SelectTopK() replaces THRESHOLD by the prediction for the next selection. The
// prediction affects the time of a selection, never its result. REQUIRES: top.indices.size() ==
// top.values.size() <= values.size() < 2^31.
void SelectTopK(std::span<const float> values, const IndexedValues& top, uint32_t& threshold);

// Computes values += gradient and selects from the sums. REQUIRES: gradient.size() ==
// values.size().
void AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                      const IndexedValues& top, uint32_t& threshold);

// Limits of the distance between the predicted threshold and t, the k-th largest magnitude, as
// fractions of t. If the threshold were closer to t, the prediction would fail whenever t decreases
// a little. If the threshold were lower, it would yield too many candidates.
inline constexpr float kSmallestMargin = 1.0f / 256;
inline constexpr float kLargestMargin = 1.0f / 14;

// Returns the threshold for the next selection, given that the current selection found FOUND
// candidates with the threshold SMALLEST, and the k-th largest magnitude KTH_BITS. For the same
// values, the returned threshold would yield about 2 k candidates.
constexpr uint32_t NextThreshold(uint32_t smallest, size_t found, uint32_t kth_bits, size_t k) {
  const float kth = std::bit_cast<float>(kth_bits);
  const float margin = kth - std::bit_cast<float>(smallest);
  const float wanted = static_cast<float>(k + 64) / static_cast<float>(found - k + 1);
  const float next = kth - std::clamp(margin * wanted, kSmallestMargin * kth, kLargestMargin * kth);
  return std::max(MagnitudeBits(next), 1u);
}

// Returns the capacity of the candidate array. The capacity is sufficient if the k-th largest
// magnitude increases by at most a third between two selections, as it does at the start of
// training.
constexpr size_t CandidateCapacity(size_t count, size_t k) { return std::min(count, 8 * k + 4096); }

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SELECT_TOP_K_H_
