// The values at or above a magnitude and their indices, in one pass, which may
// add a gradient on the way. Pure functions: thread-safe.
//
// Magnitudes are the bits of |v|: they order as the floats do, and a NaN is
// above them all.
#ifndef THINWIRE_KERNELS_COLLECT_H_
#define THINWIRE_KERNELS_COLLECT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace thinwire::kernels {

// What a room for COUNT values must hold: whole vectors are written at its end.
inline constexpr size_t kCollectPadding = 128;

constexpr uint32_t MagnitudeBits(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFF; }

// A few values of an array, and the index of each. REQUIRES: as many of one as
// of the other.
struct IndexedValues {
  std::span<uint32_t> indices;
  std::span<float> values;

  IndexedValues First(size_t count) const { return {indices.first(count), values.first(count)}; }
};

// Writes each values[i] with |values[i]| >= SMALLEST and its i to FOUND,
// indices rising, and returns their count; nullopt if FOUND, less its padding,
// has no room for them. REQUIRES: room for kCollectPadding; values.size() <
// 2^32.
std::optional<size_t> CollectAtLeast(std::span<const float> values, uint32_t smallest,
                                     const IndexedValues &found);

// The same of values + gradient, which is written to VALUES, whole in any case.
// REQUIRES: gradient.size() == values.size().
std::optional<size_t> AddAndCollectAtLeast(std::span<const float> gradient, std::span<float> values,
                                           uint32_t smallest, const IndexedValues &found);

// The same of CANDIDATES, with their indices; FOUND may be CANDIDATES.
std::optional<size_t> CollectAtLeast(const IndexedValues &candidates, uint32_t smallest,
                                     const IndexedValues &found);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_COLLECT_H_
