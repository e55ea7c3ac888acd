// The two operations on a row of which products of matrices consist, and a unit for their operands:
//
//   Dot              the sum of a[i] * b[i]
//   AddScaled        sum += factor * values
//   ReciprocalUnit   a power of two that makes products of huge or tiny values representable
//
// Every product and every sum is rounded to float separately, in a fixed order: Dot adds product i
// to part i mod kDotParts, and then adds the parts in order. Uses Highway vector instructions. Pure
// functions; thread-safe.
#ifndef THINWIRE_KERNELS_ROW_PRODUCTS_H_
#define THINWIRE_KERNELS_ROW_PRODUCTS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kDotParts = 16;

// REQUIRES: a.size() == b.size().
float Dot(std::span<const float> a, std::span<const float> b);

// REQUIRES: both arrays have the same length and do not overlap.
void AddScaled(float factor, std::span<const float> values, std::span<float> sum);

// Returns 1/u for the largest power of two u that is not above LARGEST, but u is at least 2^-126 and
// at most 2^126, so that u and 1/u are normal floats. Returns 1 if LARGEST is 0 or not finite.
// REQUIRES: LARGEST is not negative.
constexpr float ReciprocalUnit(float largest) {
  const uint32_t bits = std::bit_cast<uint32_t>(largest);
  if (bits == 0 || bits >= 0x7F800000) return 1;
  const uint32_t exponent = bits >> 23;  // of u, with the bias 127
  return std::bit_cast<float>((254 - (exponent < 1 ? 1 : exponent > 253 ? 253 : exponent)) << 23);
}

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_ROW_PRODUCTS_H_
