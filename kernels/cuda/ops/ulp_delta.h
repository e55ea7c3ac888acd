// Changes floats by a number of ULPs (units in the last place) on the GPU: replaces a value by the
// float that is DELTA positions after it in the order of all floats (kernels/select/float_order.h).
// Positions are modulo 2^32.
//
//   AddUlps     values[i] is changed by deltas[i]
//   AddUlpsAt   values[indices[j]] is changed by deltas[j]
//
// The CPU version, common/codec/delta/ulp_delta.h, computes the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_ULP_DELTA_H_
#define THINWIRE_KERNELS_CUDA_OPS_ULP_DELTA_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for both functions: all arrays are in GPU memory; there is one delta per value
// (AddUlps) or per index (AddUlpsAt); indices are distinct and in range.

Status AddUlps(std::span<const uint32_t> deltas, std::span<float> values, const Stream& stream);

Status AddUlpsAt(std::span<const uint32_t> indices, std::span<const uint32_t> deltas,
                 std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_ULP_DELTA_H_
