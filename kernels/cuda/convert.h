// kernels/convert.h on the GPU: floats to codes of a number format and back, each in one pass.
//
// CODES may lie at any address, but only where they and the floats begin at 16 bytes do they move
// as fast as a copy. A NaN is a NaN, maybe with other bits than on the CPU. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_CONVERT_H_
#define THINWIRE_KERNELS_CUDA_CONVERT_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all: what kernels/convert.h does.
template <typename Format>
Status Encode(std::span<const float> values, float unit, std::byte* codes, const Stream& stream);

template <typename Format>
Status EncodeFeedback(std::span<const float> gradient, std::span<float> residual, float unit,
                      std::byte* codes, const Stream& stream);

template <typename Format>
Status Decode(const std::byte* codes, float unit, std::span<float> out, const Stream& stream);

template <typename Format>
Status DecodeScaled(const std::byte* codes, float unit, float scale, std::span<float> out,
                    const Stream& stream);

template <typename Format>
Status DecodeAdd(const std::byte* codes, float unit, float scale, std::span<float> sum,
                 const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_CONVERT_H_
