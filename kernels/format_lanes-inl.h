// One vector of floats to one vector of codes and back: the formulas of number_format.h, lane by
// lane. Included once for each set of machine instructions that a kernel is compiled for.
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

// A target of one lane has no vectors to cut codes from: there the scalar loop is all.
#if HWY_TARGET != HWY_SCALAR

using Floats = hn::ScalableTag<float>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::RebindToUnsigned<Floats>;

// As many codes as a vector of floats has lanes, and their bytes.
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

// The codes of magnitudes of up to the largest finite value, and in ROUNDED what they decode to.
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
    // Adding the right power of two leaves exactly the code's mantissa at the end of the sum: for a
    // normal result with the implicit bit, which counts as one exponent, for a subnormal without.
    const auto smallest = hn::Set(di, static_cast<int32_t>(kSmallestNormal<Format>));
    const auto power = hn::Max(hn::And(magnitude, hn::Set(di, 0x7F800000)), smallest);
    const auto addend = hn::Add(power, hn::Set(di, kShift << 23));
    const auto sum = hn::Add(hn::BitCast(Floats(), magnitude), hn::BitCast(Floats(), addend));
    rounded = hn::Sub(sum, hn::BitCast(Floats(), addend));
    const auto mantissa = hn::Sub(hn::BitCast(di, sum), addend);
    return hn::Add(mantissa, hn::ShiftRight<kShift>(hn::Sub(power, smallest)));
  }
}

// The codes of VALUES, and in ROUNDED what they decode to (of a NaN: anything). kWithin: REQUIRES
// that none is larger than the format's largest, or a NaN.
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

// The bits of the float of a magnitude, given those of its code moved to the float's place.
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

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#endif  // THINWIRE_KERNELS_FORMAT_LANES_INL_H_
