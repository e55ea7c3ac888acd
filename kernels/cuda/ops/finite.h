// Checks on the GPU whether arrays are finite or bounded. The functions write the answer, 1 or 0,
// to GPU memory. The CPU version is kernels/finite.h. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_FINITE_H_
#define THINWIRE_KERNELS_CUDA_OPS_FINITE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

// Sets ANSWER to 1 if all values are finite, else to 0.
Status AllFinite(std::span<const float> values, uint32_t* answer, const Stream& stream);

// Sets ANSWER to 1 if no code has a larger magnitude than LARGEST, a positive code, else to 0. The
// COUNT codes begin at CODES, which need not be aligned. With LARGEST = Format::kMaxFinite the
// function tests whether all codes are finite.
template <typename Format>
Status AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest,
                      uint32_t* answer, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_FINITE_H_
