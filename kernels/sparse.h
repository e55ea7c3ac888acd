// A few values of a large array, by their indices. Pure functions: thread-safe.
//
//   Gather       out[j] = values[indices[j]]
//   Scatter      out[indices[j]] = scale * values[j]
//   ScatterAdd   sum[indices[j]] += scale * values[j]
//
// They wait for memory, which vectors do not bring sooner, but asking ahead does: most for the
// hundreds of entries of one call.
#ifndef THINWIRE_KERNELS_SPARSE_H_
#define THINWIRE_KERNELS_SPARSE_H_

#include <cstdint>
#include <span>

namespace thinwire::kernels {

// REQUIRES, for all: as many indices as the short array has values; every index within the long
// one.

void Gather(std::span<const float> values, std::span<const uint32_t> indices, std::span<float> out);

void Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
             std::span<float> out);

// An index that comes twice is added twice.
void ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SPARSE_H_
