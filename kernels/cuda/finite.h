// kernels/finite.h on the GPU: whether arrays of numbers are finite, or within a smaller bound. The
// answer, 1 or 0, is written to memory of the device. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_FINITE_H_
#define THINWIRE_KERNELS_CUDA_FINITE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

Status AllFinite(std::span<const float> values, uint32_t* answer, const Stream& stream);

template <typename Format>
Status AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest,
                      uint32_t* answer, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_FINITE_H_
