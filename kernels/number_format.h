// The number formats of payloads, and the scalar formulas that define them.
//
//   format    sign/exponent/mantissa   largest finite   infinity              not a number
//   Fp32      1/8/23                   3.4e38           bits unchanged        bits unchanged
//   Fp16      1/5/10                   65504            0x7C00                0x7E00
//   Bf16      1/8/7                    3.39e38          0x7F80                0x7FC0
//   Fp8E5m2   1/5/2                    57344 = 0x7B     0x7C, never encoded   0x7F
//   Fp8E4m3   1/4/3                    448 = 0x7E       none                  0x7F
//
// Encoding rounds to nearest even and saturates: a finite value becomes a finite code. The fp8
// formats also saturate infinities, like the FP8 formats of the Open Compute Project in saturating
// mode. In the formulas, x is the float, c is its code without the sign bit, a = bits(x) &
// 0x7FFFFFFF, M is the number of mantissa bits and B is the exponent bias:
//
//   normal result, a >= (128 - B) << 23:
//     c = (a + 2^(22 - M) - 1 + ((a >> (23 - M)) & 1) - ((127 - B) << 23)) >> (23 - M)
//   subnormal result:
//     c = bits(|x| + F) - bits(F),  F = 2^(24 - B - M)
//
// The formula for subnormal results is exact because adding F leaves the rounded bits of the
// subnormal in the low bits of the sum.
#ifndef THINWIRE_KERNELS_NUMBER_FORMAT_H_
#define THINWIRE_KERNELS_NUMBER_FORMAT_H_

#include <algorithm>
#include <bit>
#include <cstdint>

namespace thinwire::kernels {

// The constants of a format:
//   kMaxFinite       code of the largest finite value
//   kInfinity        smallest positive code that is not finite
//   kKeepsInfinity   true: an infinity is encoded as kInfinity; false: an infinity saturates
//   kIeee            true: the all-ones exponent means infinity or NaN, as in IEEE 754
//   kScaled          true: values are divided by a power of two before encoding
struct Fp32 {
  using Code = uint32_t;
  static constexpr int kMantissaBits = 23, kBias = 127;
  static constexpr uint32_t kMaxFinite = 0x7F7FFFFF, kInfinity = 0x7F800000, kNan = 0x7FC00000;
  static constexpr bool kKeepsInfinity = true, kIeee = true, kScaled = false;
};

struct Fp16 {
  using Code = uint16_t;
  static constexpr int kMantissaBits = 10, kBias = 15;
  static constexpr uint32_t kMaxFinite = 0x7BFF, kInfinity = 0x7C00, kNan = 0x7E00;
  static constexpr bool kKeepsInfinity = true, kIeee = true, kScaled = false;
};

struct Bf16 {
  using Code = uint16_t;
  static constexpr int kMantissaBits = 7, kBias = 127;
  static constexpr uint32_t kMaxFinite = 0x7F7F, kInfinity = 0x7F80, kNan = 0x7FC0;
  static constexpr bool kKeepsInfinity = true, kIeee = true, kScaled = false;
};

struct Fp8E5m2 {
  using Code = uint8_t;
  static constexpr int kMantissaBits = 2, kBias = 15;
  static constexpr uint32_t kMaxFinite = 0x7B, kInfinity = 0x7C, kNan = 0x7F;
  static constexpr bool kKeepsInfinity = false, kIeee = true, kScaled = false;
};

struct Fp8E4m3 {
  using Code = uint8_t;
  static constexpr int kMantissaBits = 3, kBias = 7;
  static constexpr uint32_t kMaxFinite = 0x7E, kInfinity = 0x7F, kNan = 0x7F;
  static constexpr bool kKeepsInfinity = false, kIeee = false, kScaled = true;
};

// The sign bit of a code.
template <typename Format>
inline constexpr uint32_t kSignBit = 1u << (8 * sizeof(typename Format::Code) - 1);

// kSubnormalAddend: the bits of the float F = 2^(24 - B - M) in the formula for subnormal results,
// where B is the exponent bias and M the number of mantissa bits of the format. kSmallestNormal:
// the bits of the smallest float whose code is a normal number.
template <typename Format>
inline constexpr uint32_t kSubnormalAddend =
    static_cast<uint32_t>(127 + 24 - Format::kBias - Format::kMantissaBits) << 23;
template <typename Format>
inline constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - Format::kBias) << 23;

// The exponent bias of a float minus the exponent bias of the format, shifted to the exponent
// position of a float.
template <typename Format>
inline constexpr uint32_t kRebias = static_cast<uint32_t>(127 - Format::kBias) << 23;

template <typename Format>
constexpr typename Format::Code EncodeValue(float value) {
  using Code = typename Format::Code;
  constexpr int kShift = 23 - Format::kMantissaBits;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if constexpr (kShift == 0) {
    return static_cast<Code>(bits);
  } else {
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    const uint32_t sign = bits >> 31 ? kSignBit<Format> : 0;
    if (magnitude > 0x7F800000) return static_cast<Code>(Format::kNan);
    if (Format::kKeepsInfinity && magnitude == 0x7F800000) {
      return static_cast<Code>(Format::kInfinity | sign);
    }
    uint32_t code = 0;
    if (kRebias<Format> == 0 || magnitude >= kSmallestNormal<Format>) {
      const uint32_t rounding = (1u << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1);
      code = (magnitude + rounding - kRebias<Format>) >> kShift;
    } else {
      const float addend = std::bit_cast<float>(kSubnormalAddend<Format>);
      code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + addend) -
             kSubnormalAddend<Format>;
    }
    // uint32_t{} copies kMaxFinite, because std::min() takes references and the constant has no
    // address in device code.
    return static_cast<Code>(std::min(code, uint32_t{Format::kMaxFinite}) | sign);
  }
}

template <typename Format>
constexpr float DecodeValue(typename Format::Code code) {
  constexpr int kShift = 23 - Format::kMantissaBits;
  const uint32_t magnitude = code & (kSignBit<Format> - 1);
  const uint32_t sign = code & kSignBit<Format> ? 0x80000000 : 0;
  uint32_t bits = magnitude << kShift;
  if constexpr (kRebias<Format> != 0) {
    if (magnitude >= Format::kInfinity) {
      bits = Format::kIeee ? bits + 2 * kRebias<Format> : 0x7FC00000;
    } else if (magnitude >> Format::kMantissaBits != 0) {
      bits += kRebias<Format>;
    } else {  // subnormal: place the code's bits below a leading 1, then subtract the 1
      bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits + kSmallestNormal<Format>) -
                                     std::bit_cast<float>(kSmallestNormal<Format>));
    }
  }
  return std::bit_cast<float>(bits | sign);
}

template <typename Format>
constexpr bool IsFiniteCode(typename Format::Code code) {
  return (code & (kSignBit<Format> - 1)) < Format::kInfinity;
}

// Returns the largest code whose value is at most LIMIT. REQUIRES: limit >= 0.
template <typename Format>
constexpr typename Format::Code LargestCodeWithin(float limit) {
  using Code = typename Format::Code;
  const Code nearest = std::min<Code>(EncodeValue<Format>(limit), Format::kMaxFinite);
  return DecodeValue<Format>(nearest) > limit ? static_cast<Code>(nearest - 1) : nearest;
}

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_NUMBER_FORMAT_H_
