// Elementwise arithmetic on arrays:
//
//   Add           sum += values
//   Negate        out = -values
//   ScaleFinite   out = factor * values, and checks whether all products are finite
//
// Every result is rounded to float separately. Uses Highway vector instructions. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_ARITHMETIC_H_
#define THINWIRE_KERNELS_ARITHMETIC_H_

#include <span>

namespace thinwire::kernels {

// REQUIRES, for all functions: both arrays have the same length; they are one array or do not
// overlap.

void Add(std::span<const float> values, std::span<float> sum);

void Negate(std::span<const float> values, std::span<float> out);

// Returns whether every product factor * value is finite.
bool ScaleFinite(float factor, std::span<const float> values, std::span<float> out);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_ARITHMETIC_H_
