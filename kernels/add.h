// The plainest passes over arrays.
//
//   Add      sum += values
//   Negate   out = -values
//
// Vectors: Highway. Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_ADD_H_
#define THINWIRE_KERNELS_ADD_H_

#include <span>

namespace thinwire::kernels {

// REQUIRES, for both: the spans are as long.
void Add(std::span<const float> values, std::span<float> sum);
void Negate(std::span<const float> values, std::span<float> out);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_ADD_H_
