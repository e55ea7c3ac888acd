// The k values of largest magnitude, exactly.
//
// Values are ordered by the 64-bit key (bits of |v|, ~index): of equal
// magnitudes the lower index is the larger, so every machine chooses the same
// set; a NaN is above an infinity. One pass collects the values from a
// magnitude a little below the k-th, and the k-th is found among those few.
// That magnitude is
//
//   t - clamp((t - c) (k + 64) / (n - k + 1), t/256, t/14)
//
// where the last selection collected n values from c and its k-th was t: about
// as many again as are selected, however thickly values lie below the k-th.
// (Error feedback piles them up there.) Without a last selection, and where it
// misled, the magnitude is guessed from a sample; where that collects too few
// or too many as well, it is the k-th itself, found in many passes.
//
// Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_TOP_K_H_
#define THINWIRE_KERNELS_TOP_K_H_

#include <cstdint>
#include <span>

#include "kernels/collect.h"

namespace thinwire::kernels {

// Writes the top.indices.size() largest of VALUES to TOP, indices rising.
// COLLECT_FROM is what the last selection of the same array left there, or 0,
// and is replaced: how long this one takes depends on it, what it selects does
// not. REQUIRES: top.indices.size() == top.values.size() <= values.size() <
// 2^31.
void SelectTopK(std::span<const float> values, const IndexedValues &top, uint32_t &collect_from);

// The same after values += gradient. REQUIRES: gradient.size() ==
// values.size().
void AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                      const IndexedValues &top, uint32_t &collect_from);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_TOP_K_H_
