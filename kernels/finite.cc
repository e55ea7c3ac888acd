#include "kernels/finite.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/finite.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns whether no code has a larger magnitude than BOUND. Compares only the largest magnitude
// with BOUND. Codes of infinities and NaNs are larger than all codes of finite values.
template <typename Format>
bool AllWithin(const std::byte* codes, size_t count, typename Format::Code bound) {
  using Code = typename Format::Code;
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<Code> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const auto magnitude = hn::Set(d, static_cast<Code>(kSignBit<Format> - 1));
  auto largest = hn::Zero(d);
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto bytes = hn::LoadU(d8, reinterpret_cast<const uint8_t*>(codes) + i * sizeof(Code));
    largest = hn::Max(largest, hn::And(hn::BitCast(d, bytes), magnitude));
  }
  if (!hn::AllFalse(d, hn::Lt(hn::Set(d, bound), largest))) return false;
#endif
  for (; i < count; ++i) {
    Code code;
    std::memcpy(&code, codes + i * sizeof(Code), sizeof(Code));
    if ((code & (kSignBit<Format> - 1)) > bound) return false;
  }
  return true;
}

#define THINWIRE_FINITE(Format)                                                               \
  bool AllWithin##Format(const std::byte* codes, size_t count, typename Format::Code bound) { \
    return AllWithin<Format>(codes, count, bound);                                            \
  }

THINWIRE_FINITE(Fp32)
THINWIRE_FINITE(Fp16)
THINWIRE_FINITE(Bf16)
THINWIRE_FINITE(Fp8E5m2)
THINWIRE_FINITE(Fp8E4m3)
#undef THINWIRE_FINITE

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

#define THINWIRE_FINITE(Format)                                                             \
  HWY_EXPORT(AllWithin##Format);                                                            \
  template <>                                                                               \
  bool AllCodesWithin<Format>(const std::byte* codes, size_t count, Format::Code largest) { \
    return HWY_DYNAMIC_DISPATCH(AllWithin##Format)(codes, count, largest);                  \
  }

THINWIRE_FINITE(Fp32)
THINWIRE_FINITE(Fp16)
THINWIRE_FINITE(Bf16)
THINWIRE_FINITE(Fp8E5m2)
THINWIRE_FINITE(Fp8E4m3)
#undef THINWIRE_FINITE

bool AllFinite(std::span<const float> values) {
  return AllCodesWithin<Fp32>(std::as_bytes(values).data(), values.size(), Fp32::kMaxFinite);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
