// Stream compaction by magnitude: collects the values at or above a threshold and their indices in
// one pass, which can also add a gradient.
//
// Thresholds are magnitudes given by the bits of |v|. They order like the floats, with NaNs above
// infinity. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_COLLECT_H_
#define THINWIRE_KERNELS_COLLECT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace thinwire::kernels {

// Extra elements that an output array needs, because whole vectors are written at its end.
inline constexpr size_t kCollectPadding = 128;

constexpr uint32_t MagnitudeBits(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7FFFFFFF;
}

// Some values of an array and their indices in it. REQUIRES: indices.size() == values.size().
struct IndexedValues {
  std::span<uint32_t> indices;
  std::span<float> values;

  IndexedValues First(size_t count) const { return {indices.first(count), values.first(count)}; }
};

// Writes all values[i] with |values[i]| >= SMALLEST and their indices i to FOUND, in ascending
// order of i, and returns their number. Returns nullopt if FOUND, without its padding, is too
// small. REQUIRES: found.indices.size() >= kCollectPadding; values.size() < 2^32.
std::optional<size_t> CollectAtLeast(std::span<const float> values, uint32_t smallest,
                                     const IndexedValues& found);

// Computes values += gradient and collects from the sums. Adds the whole gradient even if FOUND is
// too small. REQUIRES: gradient.size() == values.size().
std::optional<size_t> AddAndCollectAtLeast(std::span<const float> gradient, std::span<float> values,
                                           uint32_t smallest, const IndexedValues& found);

// Collects from CANDIDATES, which keep their indices. FOUND may be CANDIDATES.
std::optional<size_t> CollectAtLeast(const IndexedValues& candidates, uint32_t smallest,
                                     const IndexedValues& found);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_COLLECT_H_
