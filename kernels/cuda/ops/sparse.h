// Gather and scatter on the GPU:
//
//   Gather       out[j] = values[indices[j]]
//   Scatter      out[indices[j]] = scale * values[j]
//   ScatterAdd   sum[indices[j]] += scale * values[j]
//
// The CPU version, kernels/sparse.h, computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_SPARSE_H_
#define THINWIRE_KERNELS_CUDA_OPS_SPARSE_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all functions: all arrays are in GPU memory; INDICES and the short array (OUT of
// Gather(), VALUES of Scatter() and ScatterAdd()) have equal lengths; indices are in range and
// distinct (the order of two additions to the same value would be undefined).

Status Gather(std::span<const float> values, std::span<const uint32_t> indices,
              std::span<float> out, const Stream& stream);

Status Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
               std::span<float> out, const Stream& stream);

Status ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                  std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_SPARSE_H_
