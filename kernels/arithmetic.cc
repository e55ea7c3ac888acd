#include "kernels/arithmetic.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arithmetic.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"
#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void AddAll(std::span<const float> values, std::span<float> sum) {
  ForEachVector(sum.size(), [&](auto d, size_t i) HWY_ATTR {
    float* const at = sum.data() + i;
    hn::StoreU(hn::Add(hn::LoadU(d, at), hn::LoadU(d, values.data() + i)), d, at);
  });
}

void NegateAll(std::span<const float> values, std::span<float> out) {
  ForEachVector(out.size(), [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Neg(hn::LoadU(d, values.data() + i)), d, out.data() + i);
  });
}

// Compares the bits of magnitudes as integers, so infinities and NaNs are larger than all finite
// values.
bool ScaleLoop(float factor, std::span<const float> values, std::span<float> out) {
  constexpr int32_t kMagnitude = 0x7FFFFFFF;
  constexpr int32_t kInfinity = 0x7F800000;
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto factors = hn::Set(d, factor);
  const auto magnitude = hn::Set(di, kMagnitude);
  auto largest = hn::Zero(di);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= values.size(); i += hn::Lanes(d)) {
    const auto products = hn::Mul(factors, hn::LoadU(d, values.data() + i));
    hn::StoreU(products, d, out.data() + i);
    largest = hn::Max(largest, hn::And(hn::BitCast(di, products), magnitude));
  }
  int32_t result = hn::GetLane(hn::MaxOfLanes(di, largest));
  for (; i < values.size(); ++i) {
    out[i] = factor * values[i];
    result = std::max(result, std::bit_cast<int32_t>(out[i]) & kMagnitude);
  }
  return result < kInfinity;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(AddAll);
HWY_EXPORT(NegateAll);

void Add(std::span<const float> values, std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(AddAll)(values, sum);
}

void Negate(std::span<const float> values, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(NegateAll)(values, out);
}

HWY_EXPORT(ScaleLoop);

bool ScaleFinite(float factor, std::span<const float> values, std::span<float> out) {
  return HWY_DYNAMIC_DISPATCH(ScaleLoop)(factor, values, out);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
