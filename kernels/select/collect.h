// Stream compaction by magnitude: one pass collects the values whose magnitude is at least a
// threshold, and their indices. The same pass can first add a gradient.
//
// A threshold is given as the bits of a magnitude |v|. Compared as integers, these bits have the
// order of the floats, with NaNs above infinity. Uses Highway vector instructions. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_SELECT_COLLECT_H_
#define THINWIRE_KERNELS_SELECT_COLLECT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace thinwire::kernels {

// Number of extra elements at the end of an output array. The kernels need them because they write
// whole vectors.
inline constexpr size_t kCollectPadding = 128;

constexpr uint32_t MagnitudeBits(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7FFFFFFF;
}

// Selected values of an array, and their indices in that array. REQUIRES: indices.size() ==
// values.size().
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

// Computes values += gradient and collects the sums as CollectAtLeast() does. Adds the whole
// gradient even if FOUND is too small. REQUIRES: gradient.size() == values.size().
std::optional<size_t> AddAndCollectAtLeast(std::span<const float> gradient, std::span<float> values,
                                           uint32_t smallest, const IndexedValues& found);

// Collects those CANDIDATES whose magnitude is at least SMALLEST, with their original indices.
// FOUND and CANDIDATES may be the same arrays.
std::optional<size_t> CollectAtLeast(const IndexedValues& candidates, uint32_t smallest,
                                     const IndexedValues& found);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SELECT_COLLECT_H_
