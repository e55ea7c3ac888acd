// Checks on the GPU whether arrays are finite or bounded. The answer, 1 or 0, goes to GPU memory.
// CPU twin: kernels/finite.h. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_FINITE_H_
#define THINWIRE_KERNELS_CUDA_OPS_FINITE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

// Sets ANSWER to 1 if no value is infinite or NaN, else to 0.
Status AllFinite(std::span<const float> values, uint32_t* answer, const Stream& stream);

// Sets ANSWER to 1 if no magnitude among COUNT codes at CODES (any address) exceeds that of the
// positive code LARGEST, else to 0. With Format::kMaxFinite this tests whether all codes are
// finite.
template <typename Format>
Status AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest,
                      uint32_t* answer, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_FINITE_H_
