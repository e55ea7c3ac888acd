// Converts one vector of floats to one vector of codes and back, with the formulas of
// number_format.h in every lane. Highway compiles a kernel once per instruction set. Each time, the
// kernel includes this header.
//
// On machines with an fp16 conversion instruction, LoadValues() uses the instruction as follows:
//
//   fp16       converts the code
//   fp8_e5m2   converts the fp16 number whose upper byte is the code
//   fp8_e4m3   moves exponent and mantissa to their fp16 positions, converts the fp16 number,
//              multiplies by 2^(15 - 7)
//   others     calls DecodeLanes() instead
#if defined(THINWIRE_KERNELS_FORMAT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_FORMAT_LANES_INL_H_
#undef THINWIRE_KERNELS_FORMAT_LANES_INL_H_
#else
#define THINWIRE_KERNELS_FORMAT_LANES_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/number_format.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's scalar target has no vectors of codes. It uses only the scalar formulas of
// number_format.h.
#if HWY_TARGET != HWY_SCALAR

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;

// Highway tags: Codes has one code per lane of a vector of floats; CodeBytes has the bytes of these
// codes.
template <typename Format>
using Codes = hn::Rebind<typename Format::Code, Words>;
template <typename Format>
using CodeBytes = hn::Repartition<uint8_t, Codes<Format>>;

template <typename Format>
HWY_INLINE hn::Vec<Ints> LoadCodes(const std::byte* from) {
  const auto bytes = hn::LoadU(CodeBytes<Format>(), reinterpret_cast<const uint8_t*>(from));
  if constexpr (sizeof(typename Format::Code) == 4) {
    return hn::BitCast(Ints(), bytes);
  } else {
    return hn::PromoteTo(Ints(), hn::BitCast(Codes<Format>(), bytes));
  }
}

template <typename Format>
HWY_INLINE void StoreCodes(hn::Vec<Ints> codes, std::byte* to) {
  uint8_t* bytes = reinterpret_cast<uint8_t*>(to);
  const CodeBytes<Format> tag;
  if constexpr (sizeof(typename Format::Code) == 4) {
    hn::StoreU(hn::BitCast(tag, codes), tag, bytes);
  } else {
    const auto words = hn::BitCast(Words(), codes);
    hn::StoreU(hn::BitCast(tag, hn::TruncateTo(Codes<Format>(), words)), tag, bytes);
  }
}

// Returns the codes of MAGNITUDE, the bits of non-negative floats. Sets ROUNDED to the values that
// the codes decode to. REQUIRES: no magnitude exceeds the format's largest finite value.
template <typename Format>
HWY_INLINE hn::Vec<Ints> RoundLanes(hn::Vec<Ints> magnitude, hn::Vec<Floats>& rounded) {
  constexpr int kShift = 23 - Format::kMantissaBits;
  const Ints di;
  if constexpr (kRebias<Format> == 0) {
    const auto odd = hn::And(hn::ShiftRight<kShift>(magnitude), hn::Set(di, 1));
    const auto half = hn::Set(di, (1 << (kShift - 1)) - 1);
    const auto code = hn::ShiftRight<kShift>(hn::Add(hn::Add(magnitude, half), odd));
    rounded = hn::BitCast(Floats(), hn::ShiftLeft<kShift>(code));
    return code;
  } else {
    // ADDEND is a power of two. It is so large that adding it to the float rounds away the mantissa
    // bits that the code does not have. The rounded mantissa of the code is then in the low bits of
    // the sum. If the code is normal, these bits include the implicit leading 1 of the mantissa,
    // which adds one to the exponent. If the code is subnormal, there is no implicit 1.
    const auto smallest = hn::Set(di, static_cast<int32_t>(kSmallestNormal<Format>));
    const auto power = hn::Max(hn::And(magnitude, hn::Set(di, 0x7F800000)), smallest);
    const auto addend = hn::Add(power, hn::Set(di, kShift << 23));
    const auto sum = hn::Add(hn::BitCast(Floats(), magnitude), hn::BitCast(Floats(), addend));
    rounded = hn::Sub(sum, hn::BitCast(Floats(), addend));
    const auto mantissa = hn::Sub(hn::BitCast(di, sum), addend);
    return hn::Add(mantissa, hn::ShiftRight<kShift>(hn::Sub(power, smallest)));
  }
}

// Returns the codes of VALUES. Sets ROUNDED to the values that the codes decode to (unspecified for
// a NaN). REQUIRES, if kWithin: no magnitude exceeds the format's largest finite value; no value is
// a NaN.
template <typename Format, bool kWithin = false>
HWY_INLINE hn::Vec<Ints> EncodeLanes(hn::Vec<Floats> values, hn::Vec<Floats>& rounded) {
  const Ints di;
  const auto bits = hn::BitCast(di, values);
  if constexpr (sizeof(typename Format::Code) == 4) {
    rounded = values;
    return bits;
  } else {
    constexpr int kSignShift = 32 - 8 * sizeof(typename Format::Code);
    constexpr auto kLargest = std::bit_cast<int32_t>(
        DecodeValue<Format>(static_cast<typename Format::Code>(Format::kMaxFinite)));
    const auto infinity = hn::Set(di, 0x7F800000);
    const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
    const auto sign = hn::And(hn::ShiftRight<kSignShift>(bits),
                              hn::Set(di, static_cast<int32_t>(kSignBit<Format>)));
    const auto held = kWithin ? magnitude : hn::Min(magnitude, hn::Set(di, kLargest));
    auto code = RoundLanes<Format>(held, rounded);
    rounded = hn::CopySignToAbs(rounded, values);
    if constexpr (kWithin) return hn::Or(code, sign);
    if constexpr (Format::kKeepsInfinity) {
      const auto infinite = hn::Eq(magnitude, infinity);
      code = hn::IfThenElse(infinite, hn::Set(di, static_cast<int32_t>(Format::kInfinity)), code);
      rounded = hn::IfThenElse(hn::RebindMask(Floats(), infinite), values, rounded);
    }
    return hn::IfThenElse(hn::Gt(magnitude, infinity),
                          hn::Set(di, static_cast<int32_t>(Format::kNan)), hn::Or(code, sign));
  }
}

// Returns the bits of the floats that MAGNITUDE, codes without sign bits, decode to. BITS is
// MAGNITUDE shifted to the mantissa position of a float.
template <typename Format>
HWY_INLINE hn::Vec<Ints> WidenLanes(hn::Vec<Ints> magnitude, hn::Vec<Ints> bits) {
  const Ints di;
  const auto smallest = hn::Set(di, static_cast<int32_t>(kSmallestNormal<Format>));
  const auto raised = hn::BitCast(Floats(), hn::Add(bits, smallest));
  const auto subnormal = hn::BitCast(di, hn::Sub(raised, hn::BitCast(Floats(), smallest)));
  const auto normal = hn::Add(bits, hn::Set(di, static_cast<int32_t>(kRebias<Format>)));
  const auto infinite = Format::kIeee
                            ? hn::Add(bits, hn::Set(di, static_cast<int32_t>(2 * kRebias<Format>)))
                            : hn::Set(di, 0x7FC00000);
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(di, 1 << Format::kMantissaBits));
  const auto is_infinite =
      hn::Gt(magnitude, hn::Set(di, static_cast<int32_t>(Format::kInfinity) - 1));
  return hn::IfThenElse(is_subnormal, subnormal, hn::IfThenElse(is_infinite, infinite, normal));
}

template <typename Format>
HWY_INLINE hn::Vec<Floats> DecodeLanes(hn::Vec<Ints> codes) {
  const Ints di;
  if constexpr (kRebias<Format> == 0) {
    return hn::BitCast(Floats(), hn::ShiftLeft<23 - Format::kMantissaBits>(codes));
  } else {
    constexpr int kSignShift = 32 - 8 * sizeof(typename Format::Code);
    const auto magnitude = hn::And(codes, hn::Set(di, static_cast<int32_t>(kSignBit<Format>) - 1));
    const auto sign = hn::ShiftLeft<kSignShift>(hn::AndNot(magnitude, codes));
    const auto bits =
        WidenLanes<Format>(magnitude, hn::ShiftLeft<23 - Format::kMantissaBits>(magnitude));
    return hn::BitCast(Floats(), hn::Or(bits, sign));
  }
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
using Halves = hn::Rebind<hwy::float16_t, Floats>;

// Loads codes as fp16 numbers, which AVX2 machines convert to fp32 in hardware. Moves the fields of
// an 8-bit code to their positions in an fp16 number.
template <typename Format>
HWY_INLINE hn::Vec<Halves> LoadHalves(const std::byte* from) {
  const auto bytes = hn::LoadU(CodeBytes<Format>(), reinterpret_cast<const uint8_t*>(from));
  if constexpr (sizeof(typename Format::Code) == 2) {
    return hn::BitCast(Halves(), bytes);
  } else {
    const hn::Rebind<int8_t, Floats> narrow;
    const hn::Rebind<int16_t, Floats> wide;
    constexpr int kShift = 10 - Format::kMantissaBits;
    // Sign extension fills all upper bits with copies of the sign bit. The mask keeps only one
    // copy, the sign bit of fp16.
    const auto kept = hn::Set(wide, static_cast<int16_t>(0x8000 | 0x7F << kShift));
    const auto codes = hn::PromoteTo(wide, hn::BitCast(narrow, bytes));
    return hn::BitCast(Halves(), hn::And(hn::ShiftLeft<kShift>(codes), kept));
  }
}

// Returns the decoded values of the codes at FROM. The bits of a NaN may differ from those that
// DecodeLanes() returns.
template <typename Format>
HWY_INLINE hn::Vec<Floats> LoadValues(const std::byte* from) {
  if constexpr (Format::kBias > 15) {
    return DecodeLanes<Format>(LoadCodes<Format>(from));
  } else {
    const Floats df;
    const auto halves = hn::PromoteTo(df, LoadHalves<Format>(from));
    if constexpr (Format::kIeee) return halves;
    // kBiasFactor corrects for the larger exponent bias of fp16. LoadHalves() turns the only NaN of
    // fp8_e4m3 into a finite fp16 number above the largest fp8_e4m3 value. The comparison turns
    // this number into a NaN again.
    constexpr auto kBiasFactor = static_cast<float>(1 << (15 - Format::kBias));
    const float nan = std::bit_cast<float>(0x7FC00000);
    const auto largest = hn::Set(df, DecodeValue<Format>(Format::kMaxFinite));
    const auto values = hn::Mul(halves, hn::Set(df, kBiasFactor));
    return hn::IfThenElse(hn::Gt(hn::Abs(values), largest), hn::Set(df, nan), values);
  }
}
#else
template <typename Format>
HWY_INLINE hn::Vec<Floats> LoadValues(const std::byte* from) {
  return DecodeLanes<Format>(LoadCodes<Format>(from));
}
#endif

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#endif  // THINWIRE_KERNELS_FORMAT_LANES_INL_H_
