// The codecs qsgd (Alistarh et al. 2017) and fp4_e3m0 on the GPU: each group of 512 values is
// quantized to levels between 0 and its largest magnitude. Encoding packs the codes in the same
// pass; decoding is one pass too.
//
//   a = the group's largest magnitude;   code = c | sign << (bits - 1)
//   qsgd       c = trunc(|v| / a * levels + draw / 2^16), at most levels;  0 for a NaN or if a = 0
//              a code decodes to +-a (c / levels)
//   fp4_e3m0   c = number of thresholds <= |v|; the thresholds are the midpoints of adjacent values
//              a code decodes to +-a 2^(c - 7), or 0 if c = 0
//
// The random draw of value i is the 16 bits from bit 16 (i mod 4) on of MixBits(seed + i / 4). The
// CPU versions, qsgd.cc and e3m0.cc in common/codec/codebook, compute the same bits. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_OPS_QSGD_H_
#define THINWIRE_KERNELS_CUDA_OPS_QSGD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::kernels::cuda {

inline constexpr size_t kQsgdGroup = 512;

// REQUIRES: 1 <= levels < 2^(bits - 1) and bits <= 8, or levels = 0 and bits = 4.
struct QsgdCode {
  int levels;  // 0: the code of fp4_e3m0
  int bits;
  uint64_t draw = 0;  // seed of the random draws of qsgd; unused for decoding
};

// The two arrays of a payload, in GPU memory. Neither needs to be aligned.
struct QsgdPayload {
  std::byte* numbers;  // one float per group: the group's largest magnitude
  std::byte* codes;    // packed as in kernels/pack_bits.h
};

Status EncodeQsgd(std::span<const float> values, const QsgdCode& code, const QsgdPayload& out,
                  const Stream& stream);

// Encodes v = residual + gradient and sets residual to the encoding error: v minus its decoded
// code. REQUIRES: gradient.size() == residual.size().
Status EncodeQsgdFeedback(std::span<const float> gradient, std::span<float> residual,
                          const QsgdCode& code, const QsgdPayload& out, const Stream& stream);

// Computes out = scale * decoded value for each code.
Status DecodeQsgd(const QsgdPayload& from, const QsgdCode& code, float scale, std::span<float> out,
                  const Stream& stream);

// Computes sum += scale * decoded value for each code.
Status DecodeQsgdAdd(const QsgdPayload& from, const QsgdCode& code, float scale,
                     std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_OPS_QSGD_H_
