#include "kernels/finite.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/finite.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The largest magnitude is enough: every code that is not finite is at or above kInfinity.
template <typename Format>
bool AllFiniteOf(const std::byte* codes, size_t count) {
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
  const auto limit = hn::Set(d, static_cast<Code>(Format::kInfinity));
  if (!hn::AllTrue(d, hn::Lt(largest, limit))) return false;
#endif
  for (; i < count; ++i) {
    Code code;
    std::memcpy(&code, codes + i * sizeof(Code), sizeof(Code));
    if (!IsFiniteCode<Format>(code)) return false;
  }
  return true;
}

#define THINWIRE_FINITE(Format)                                  \
  bool AllFinite##Format(const std::byte* codes, size_t count) { \
    return AllFiniteOf<Format>(codes, count);                    \
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

#define THINWIRE_FINITE(Format)                                       \
  HWY_EXPORT(AllFinite##Format);                                      \
  template <>                                                         \
  bool AllFiniteCodes<Format>(const std::byte* codes, size_t count) { \
    return HWY_DYNAMIC_DISPATCH(AllFinite##Format)(codes, count);     \
  }

THINWIRE_FINITE(Fp32)
THINWIRE_FINITE(Fp16)
THINWIRE_FINITE(Bf16)
THINWIRE_FINITE(Fp8E5m2)
THINWIRE_FINITE(Fp8E4m3)
#undef THINWIRE_FINITE

bool AllFinite(std::span<const float> values) {
  return AllFiniteCodes<Fp32>(std::as_bytes(values).data(), values.size());
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
