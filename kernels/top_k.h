// The k values of largest magnitude, exactly.
//
// Values are ordered by the 64-bit key (bits of |v|, ~index): of equal magnitudes the lower index
// is the larger, so every machine chooses the same set. A magnitude guessed from a sample is a
// little below the k-th; one pass collects the values above it, and the k-th is found among those
// few. A guess that collected too few or too many costs a second pass with the exact magnitude.
//
// Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_TOP_K_H_
#define THINWIRE_KERNELS_TOP_K_H_

#include <cstdint>
#include <span>

namespace thinwire::kernels {

// Writes the indices of the indices.size() largest of VALUES, rising.
// REQUIRES: indices.size() <= values.size() < 2^32.
void SelectTopK(std::span<const float> values, std::span<uint32_t> indices);

// The same after values += gradient. REQUIRES: gradient.size() == values.size().
void AddAndSelectTopK(std::span<const float> gradient, std::span<float> values,
                      std::span<uint32_t> indices);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_TOP_K_H_
