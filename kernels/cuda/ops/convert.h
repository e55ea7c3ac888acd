// Converts floats to codes of a number format and back, on the GPU. C encodes and D decodes one
// value (kernels/number_format.h). Every function is elementwise:
//
//   Encode           codes = C(values / unit)
//   EncodeFeedback   v = residual + gradient;  codes = C(v / unit);  residual = v - unit * D(codes)
//   Decode           out = unit * D(codes)
//   DecodeScaled     out = scale * (unit * D(codes))
//   DecodeAdd        sum += scale * (unit * D(codes))
//
// `unit` is a power of two with a finite reciprocal; it is 1 if the format is not scaled. CODES is
// in GPU memory and need not be aligned, but conversion reaches the memory bandwidth only if all
// arrays begin at a multiple of 16 bytes. The CPU version, kernels/convert.h, computes the same
// bits, except for the bits of NaNs. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_CONVERT_H_
#define THINWIRE_KERNELS_CUDA_OPS_CONVERT_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all functions: CODES points to as many codes as there are values. Format is Fp32,
// Fp16, Bf16, Fp8E5m2 or Fp8E4m3.

template <typename Format>
Status Encode(std::span<const float> values, float unit, std::byte* codes, const Stream& stream);

// REQUIRES: residual.size() == gradient.size().
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

#endif  // THINWIRE_KERNELS_CUDA_OPS_CONVERT_H_
