// Encodes packs of floats in a number format (kernels/number_format.h). For .cu files only.
//
// GPUs of compute capability 8.9 and later convert two floats to fp8 with one instruction (round to
// nearest even, saturating). The results equal those of EncodeValue() for all 2^32 floats; the code
// of a NaN is 0x7F.
#ifndef THINWIRE_KERNELS_CUDA_BLOCK_ENCODE_PACK_H_
#define THINWIRE_KERNELS_CUDA_BLOCK_ENCODE_PACK_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block/vector_access.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr bool kHasFp8Instructions = true;

// Returns a word with the code of FIRST in the lower byte and the code of SECOND in the upper byte.
template <typename Format>
__device__ uint16_t EncodePair(float first, float second) {
  uint16_t codes;
  if constexpr (std::is_same_v<Format, Fp8E5m2>) {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(second), "f"(first));
  }
  return codes;
}
#else
inline constexpr bool kHasFp8Instructions = false;

template <typename Format>
__device__ uint16_t EncodePair(float first, float second) {
  return static_cast<uint16_t>(EncodeValue<Format>(first) | EncodeValue<Format>(second) << 8);
}
#endif

// Returns the codes of values[j] * inverse for all j. Scaled formats divide each value by a unit
// before encoding, and INVERSE is 1 / unit. Formats that are not scaled ignore INVERSE.
template <typename Format, int N>
__device__ Pack<typename Format::Code, N> EncodePack(Pack<float, N> values, float inverse) {
  using Code = typename Format::Code;
  Pack<Code, N> codes;
  if constexpr (Format::kScaled) {
    for (int j = 0; j < N; ++j) values.at[j] *= inverse;
  }
  if constexpr (kHasFp8Instructions && sizeof(Code) == 1 && N % 2 == 0) {
    for (int j = 0; j < N; j += 2) {
      const uint16_t pair = EncodePair<Format>(values.at[j], values.at[j + 1]);
      codes.at[j] = static_cast<Code>(pair);
      codes.at[j + 1] = static_cast<Code>(pair >> 8);
    }
  } else {
    for (int j = 0; j < N; ++j) codes.at[j] = EncodeValue<Format>(values.at[j]);
  }
  return codes;
}

// Returns the encoding errors values[j] - unit * D(codes[j]) for all j. D decodes a code; UNIT is
// the factor by which a scaled format multiplies decoded codes, else 1.
template <typename Format, int N>
__device__ Pack<float, N> EncodingError(const Pack<float, N>& values,
                                        const Pack<typename Format::Code, N>& codes, float unit) {
  Pack<float, N> error;
  for (int j = 0; j < N; ++j) {
    error.at[j] = values.at[j] - unit * DecodeValue<Format>(codes.at[j]);
  }
  return error;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_BLOCK_ENCODE_PACK_H_
