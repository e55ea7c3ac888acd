// The codes of a few values, and what they lack, as kernels/number_format.h has them. Where the GPU
// converts to fp8 by itself, two values at a time, to nearest even and saturating, that is the same
// on all 2^32 floats (a NaN becomes 0x7F). Included only by the sources of kernels.
#ifndef THINWIRE_KERNELS_CUDA_ENCODE_FEW_H_
#define THINWIRE_KERNELS_CUDA_ENCODE_FEW_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/few.h"
#include "kernels/number_format.h"

namespace thinwire::kernels::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline constexpr bool kConvertsFp8 = true;

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
inline constexpr bool kConvertsFp8 = false;

template <typename Format>
__device__ uint16_t EncodePair(float first, float second) {
  return static_cast<uint16_t>(EncodeValue<Format>(first) | EncodeValue<Format>(second) << 8);
}
#endif

// The codes of values * inverse.
template <typename Format, int N>
__device__ Few<typename Format::Code, N> EncodeFew(Few<float, N> values, float inverse) {
  using Code = typename Format::Code;
  Few<Code, N> codes;
  if constexpr (Format::kScaled) {
    for (int j = 0; j < N; ++j) values.at[j] *= inverse;
  }
  if constexpr (kConvertsFp8 && sizeof(Code) == 1 && N % 2 == 0) {
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

// values - unit * what the codes decode to
template <typename Format, int N>
__device__ Few<float, N> LostFew(const Few<float, N>& values,
                                 const Few<typename Format::Code, N>& codes, float unit) {
  Few<float, N> lost;
  for (int j = 0; j < N; ++j) {
    lost.at[j] = values.at[j] - unit * DecodeValue<Format>(codes.at[j]);
  }
  return lost;
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_ENCODE_FEW_H_
