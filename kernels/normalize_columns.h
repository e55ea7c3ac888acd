// Two operations on the columns of a small matrix, which is stored column by column:
//
//   Orthonormalize   makes the columns orthogonal to each other and of length 1
//   ScaleColumns     scales each column to a largest magnitude of at least 1 and below 2
//
// Orthonormalize uses the modified method of Gram and Schmidt, in double. A sum over the rows adds
// the term of row i to part i mod kColumnParts. Then the second half of the parts is added to the
// first half, until one part is left. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_NORMALIZE_COLUMNS_H_
#define THINWIRE_KERNELS_NORMALIZE_COLUMNS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/mix_bits.h"

namespace thinwire::kernels {

inline constexpr size_t kColumnParts = 256;

// A column that loses all but this part of its length when it is made orthogonal to the columns
// before it contains only rounding errors.
inline constexpr double kDependent = 1e-5;

// Returns the power of two that scales LARGEST to at least 1 and below 2. REQUIRES: LARGEST is
// positive and finite.
constexpr double ColumnFactor(float largest) {
  // As a double, LARGEST is never subnormal.
  const uint64_t exponent = std::bit_cast<uint64_t>(double{largest}) >> 52;
  return std::bit_cast<double>((2046 - exponent) << 52);
}

// Returns the value at index I of a matrix of uniformly distributed numbers from -1 to 1.
constexpr float DrawnValue(uint64_t i) {
  return static_cast<float>(static_cast<int32_t>(MixBits(i) >> 32)) * 0x1p-31f;
}

// REQUIRES, for both functions: MATRIX consists of columns of ROWS values.

// A column that depends on the columns before it becomes zero.
void Orthonormalize(size_t rows, std::span<float> matrix);

// A column that is zero or has a value that is not finite is replaced by drawn values.
void ScaleColumns(size_t rows, std::span<float> matrix);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_NORMALIZE_COLUMNS_H_
