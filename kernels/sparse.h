// Gather and scatter:
//
//   Gather       out[j] = values[indices[j]]
//   Scatter      out[indices[j]] = scale * values[j]
//   ScatterAdd   sum[indices[j]] += scale * values[j]
//
// The memory latency limits these loops, so they use prefetching instead of vector instructions.
// Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_SPARSE_H_
#define THINWIRE_KERNELS_SPARSE_H_

#include <cstdint>
#include <span>

namespace thinwire::kernels {

// REQUIRES, for all functions: INDICES and the short array (OUT of Gather(), VALUES of Scatter()
// and ScatterAdd()) have equal lengths; every index is less than the length of the long array.

void Gather(std::span<const float> values, std::span<const uint32_t> indices, std::span<float> out);

void Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
             std::span<float> out);

// If an index occurs several times, all its values are added.
void ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SPARSE_H_
