// Changes floats by a number of ULPs (units in the last place) on the GPU: value = the float DELTA
// positions after it in the order of all floats (kernels/float_order.h), modulo 2^32.
//
//   AddUlps     values[i] is changed by deltas[i]
//   AddUlpsAt   values[indices[j]] is changed by deltas[j]
//
// CPU twin with the same bits: common/codec/delta/ulp_delta.h. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_ULP_DELTA_H_
#define THINWIRE_KERNELS_CUDA_OPS_ULP_DELTA_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both functions: all arrays are in GPU memory; there are as many deltas as values or
// indices; indices are distinct and in range.

Status AddUlps(std::span<const uint32_t> deltas, std::span<float> values, const Stream& stream);

Status AddUlpsAt(std::span<const uint32_t> indices, std::span<const uint32_t> deltas,
                 std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_ULP_DELTA_H_
