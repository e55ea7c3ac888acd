// One vector of values from the codes of a number format in memory: as DecodeLanes has them (a NaN:
// as a class), by the machine's own conversion where it has one. Included once for each set of
// machine instructions that a kernel is compiled for.
//
//   fp16       a half
//   fp8_e5m2   a half's upper byte
//   fp8_e4m3   a half with its exponent and mantissa moved, times 2^(15-7)
//   others     DecodeLanes
#if defined(THINWIRE_KERNELS_LOAD_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_LOAD_VALUES_INL_H_
#undef THINWIRE_KERNELS_LOAD_VALUES_INL_H_
#else
#define THINWIRE_KERNELS_LOAD_VALUES_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/format_lanes-inl.h"
#include "kernels/number_format.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
using Halves = hn::Rebind<hwy::float16_t, Floats>;

// These machines widen halves. A code of eight bits is a half once its fields are in the half's
// places.
template <typename Format>
HWY_INLINE hn::Vec<Halves> LoadHalves(const std::byte* from) {
  const auto bytes = hn::LoadU(CodeBytes<Format>(), reinterpret_cast<const uint8_t*>(from));
  if constexpr (sizeof(typename Format::Code) == 2) {
    return hn::BitCast(Halves(), bytes);
  } else {
    const hn::Rebind<int8_t, Floats> narrow;
    const hn::Rebind<int16_t, Floats> wide;
    constexpr int kShift = 10 - Format::kMantissaBits;
    // The sign fills all places above the code's; that of the half's sign is kept.
    const auto kept = hn::Set(wide, static_cast<int16_t>(0x8000 | 0x7F << kShift));
    const auto codes = hn::PromoteTo(wide, hn::BitCast(narrow, bytes));
    return hn::BitCast(Halves(), hn::And(hn::ShiftLeft<kShift>(codes), kept));
  }
}

// The values of the codes that begin at FROM.
template <typename Format>
HWY_INLINE hn::Vec<Floats> LoadValues(const std::byte* from) {
  if constexpr (Format::kBias > 15) {
    return DecodeLanes<Format>(LoadCodes<Format>(from));
  } else {
    const Floats df;
    const auto halves = hn::PromoteTo(df, LoadHalves<Format>(from));
    if constexpr (Format::kIeee) return halves;
    // A half's bias is larger, and the format's only NaN is an ordinary half.
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

#endif  // THINWIRE_KERNELS_LOAD_VALUES_INL_H_
