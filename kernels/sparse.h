// Gather and scatter:
//
//   Gather       out[j] = values[indices[j]]
//   Scatter      out[indices[j]] = scale * values[j]
//   ScatterAdd   sum[indices[j]] += scale * values[j]
//
// These loops wait for memory: vector instructions do not help, prefetching does. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_SPARSE_H_
#define THINWIRE_KERNELS_SPARSE_H_

#include <cstdint>
#include <span>

namespace thinwire::kernels {

// REQUIRES, for all functions: as many indices as the short array has values; every index is less
// than the size of the long array.

void Gather(std::span<const float> values, std::span<const uint32_t> indices, std::span<float> out);

void Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
             std::span<float> out);

// A repeated index is added repeatedly.
void ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SPARSE_H_
