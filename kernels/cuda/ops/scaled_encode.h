// Encodes a whole shard as fp8_e4m3 on the GPU. The GPU also chooses the scale, so the host does
// not wait for the largest magnitude. The first pass finds the largest magnitude, the second pass
// encodes the values.
//
//   unit = 2^(byte - 127), with the smallest byte in 1 .. 246 such that |v| <= 448 unit for all v
//   code = C(v / unit), with C the encoding of fp8_e4m3 (kernels/number_format.h)
//
// The CPU version, common/codec/dense/scaled_encode.h, computes the same bits, except for the sign
// of a negative zero. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_SCALED_ENCODE_H_
#define THINWIRE_KERNELS_CUDA_OPS_SCALED_ENCODE_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// The outputs of EncodeScaled() and EncodeScaledFeedback(), and the input of DecodeScaledCodes(), in
// GPU memory.
struct ScaledCodes {
  float* largest;         // receives the largest magnitude of the values
  std::byte* scale_byte;  // receives `byte`, where unit = 2^(byte - 127)
  std::byte* codes;       // receives one code per value, one byte each
};

Status EncodeScaled(std::span<const float> values, const ScaledCodes& out, const Stream& stream);

// Encodes v = residual + gradient and sets residual to the encoding error v - unit * D(code).
// REQUIRES: residual.size() == gradient.size().
Status EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                            const ScaledCodes& out, const Stream& stream);

// Computes out = unit * D(code) for the codes FROM that the last encoding wrote.
Status DecodeScaledCodes(const ScaledCodes& from, std::span<float> out, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_SCALED_ENCODE_H_
