// fp8_e4m3 of a whole shard on the GPU, the scale being chosen there: the host need not wait for
// the largest magnitude. Two passes, one for that.
//
//   unit = 2^(byte - 127), the smallest with |v| <= 448 unit for all v; byte from 1 to 246
//
// The bytes are those of common/codec/scaled_encode.h, but for the sign of a value that is a
// negative zero. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SCALED_ENCODE_H_
#define THINWIRE_KERNELS_CUDA_SCALED_ENCODE_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// On the device: LARGEST is room for one float, and where the scale byte goes and where the codes.
struct ScaledCodes {
  float* largest;
  std::byte* scale_byte;
  std::byte* codes;
};

Status EncodeScaled(std::span<const float> values, const ScaledCodes& out, const Stream& stream);

// The same of v = residual + gradient; residual becomes what was lost of v.
// REQUIRES: residual.size() == gradient.size().
Status EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                            const ScaledCodes& out, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SCALED_ENCODE_H_
