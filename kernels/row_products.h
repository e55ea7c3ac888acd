// The two operations on a row of which products of matrices consist:
//
//   Dot         the sum of a[i] * b[i]
//   AddScaled   sum += factor * values
//
// Every product and every sum is rounded to float separately, in a fixed order: Dot adds product i
// to part i mod kDotParts, and then adds the parts in order. Uses Highway vector instructions. Pure
// functions; thread-safe.
#ifndef THINWIRE_KERNELS_ROW_PRODUCTS_H_
#define THINWIRE_KERNELS_ROW_PRODUCTS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kDotParts = 16;

// REQUIRES: a.size() == b.size().
float Dot(std::span<const float> a, std::span<const float> b);

// REQUIRES: both arrays have the same length and do not overlap.
void AddScaled(float factor, std::span<const float> values, std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_ROW_PRODUCTS_H_
