// CollectDifferent() finds the positions at which two arrays differ, bit by bit. Uses Highway
// vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_DIFFER_H_
#define THINWIRE_KERNELS_DIFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace thinwire::kernels {

// Number of extra elements at the end of the output array. The kernel needs them because it writes
// whole vectors.
inline constexpr size_t kDifferPadding = 64;

// Writes all i for which a[i] and b[i] have different bits to INDICES, in ascending order, and
// returns their number. Stops and returns nullopt if INDICES, without its padding, is too small.
// REQUIRES: a.size() == b.size() < 2^32; indices.size() >= kDifferPadding.
std::optional<size_t> CollectDifferent(std::span<const float> a, std::span<const float> b,
                                       std::span<uint32_t> indices);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_DIFFER_H_
