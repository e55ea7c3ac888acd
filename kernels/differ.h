// Where two arrays differ, bit by bit. Pure function: thread-safe.
#ifndef THINWIRE_KERNELS_DIFFER_H_
#define THINWIRE_KERNELS_DIFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace thinwire::kernels {

// What a room for COUNT indices must hold: whole vectors are written at its end.
inline constexpr size_t kDifferPadding = 64;

// Writes the indices i where the bits of a[i] and b[i] differ to INDICES, rising, and returns their
// count; nullopt, as soon as that is known, if INDICES, less its padding, has no room for them.
// REQUIRES: a.size() == b.size() < 2^32; indices.size() >= kDifferPadding.
std::optional<size_t> CollectDifferent(std::span<const float> a, std::span<const float> b,
                                       std::span<uint32_t> indices);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_DIFFER_H_
