// kernels/sparse.h on the GPU: a few values of a large array, by their indices. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SPARSE_H_
#define THINWIRE_KERNELS_CUDA_SPARSE_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all: what kernels/sparse.h does, and that no index comes twice: which of two would
// be added first is past saying here.

Status Gather(std::span<const float> values, std::span<const uint32_t> indices,
              std::span<float> out, const Stream& stream);

Status Scatter(std::span<const uint32_t> indices, std::span<const float> values, float scale,
               std::span<float> out, const Stream& stream);

Status ScatterAdd(std::span<const uint32_t> indices, std::span<const float> values, float scale,
                  std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SPARSE_H_
