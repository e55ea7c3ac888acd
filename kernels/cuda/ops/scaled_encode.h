// Encodes a whole shard as fp8_e4m3 on the GPU. The GPU also chooses the scale, so the host does
// not wait for the largest magnitude. The first pass finds the largest magnitude, the second
// encodes.
//
//   unit = 2^(byte - 127), with the smallest byte in 1 .. 246 such that |v| <= 448 unit for all v
//   code = C(v / unit), with C the encoding of fp8_e4m3 (kernels/number_format.h)
//
// CPU twin: common/codec/dense/scaled_encode.h, with the same bits except for the sign of a
// negative zero. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_SCALED_ENCODE_H_
#define THINWIRE_KERNELS_CUDA_OPS_SCALED_ENCODE_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

// Destinations in GPU memory.
struct ScaledCodes {
  float* largest;         // workspace
  std::byte* scale_byte;  // one byte
  std::byte* codes;       // a byte per value
};

Status EncodeScaled(std::span<const float> values, const ScaledCodes& out, const Stream& stream);

// Encodes v = residual + gradient and sets residual to the encoding error v - unit * D(code).
// REQUIRES: residual.size() == gradient.size().
Status EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                            const ScaledCodes& out, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_SCALED_ENCODE_H_
