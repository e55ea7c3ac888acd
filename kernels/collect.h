// The indices of the values at or above a magnitude, in one pass, which may add a gradient on the
// way. Pure functions: thread-safe.
//
// Magnitudes are the bits of |v|: they order as the floats do, and a NaN is above them all.
#ifndef THINWIRE_KERNELS_COLLECT_H_
#define THINWIRE_KERNELS_COLLECT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace thinwire::kernels {

// What a room for COUNT indices must hold: whole vectors are written at its end.
inline constexpr size_t kCollectPadding = 64;

inline uint32_t MagnitudeBits(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFF; }

// Writes the indices i with |values[i]| >= SMALLEST to INDICES, rising, and returns their count;
// nullopt if INDICES, less its padding, has no room for them. REQUIRES: indices.size() >=
// kCollectPadding; values.size() < 2^32.
std::optional<size_t> CollectAtLeast(std::span<const float> values, uint32_t smallest,
                                     std::span<uint32_t> indices);

// The same of values + gradient, which is written to VALUES, whole in any case.
// REQUIRES: gradient.size() == values.size().
std::optional<size_t> AddAndCollectAtLeast(std::span<const float> gradient, std::span<float> values,
                                           uint32_t smallest, std::span<uint32_t> indices);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_COLLECT_H_
