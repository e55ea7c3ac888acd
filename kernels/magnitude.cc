#include "kernels/magnitude.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/magnitude.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Magnitudes are compared as integers: they order as the floats do, and a NaN is above them all.
// VALUE gives the values at an index, as a vector of the tag's lanes.
template <typename Value>
HWY_INLINE float LargestOf(size_t count, const Value& value) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::CappedTag<float, 1> one;
  const auto magnitude = hn::Set(di, 0x7FFFFFFF);
  auto largest = hn::Zero(di);
  size_t i = 0;
  for (; i + hn::Lanes(df) <= count; i += hn::Lanes(df)) {
    largest = hn::Max(largest, hn::And(hn::BitCast(di, value(df, i)), magnitude));
  }
  int32_t result = hn::GetLane(hn::MaxOfLanes(di, largest));
  for (; i < count; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(hn::GetLane(value(one, i)));
    result = std::max(result, bits & 0x7FFFFFFF);
  }
  return std::bit_cast<float>(result);
}

float LargestOne(std::span<const float> values) {
  return LargestOf(values.size(),
                   [&](auto d, size_t i) HWY_ATTR { return hn::LoadU(d, values.data() + i); });
}

float LargestSum(std::span<const float> a, std::span<const float> b) {
  return LargestOf(a.size(), [&](auto d, size_t i) HWY_ATTR {
    return hn::Add(hn::LoadU(d, a.data() + i), hn::LoadU(d, b.data() + i));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(LargestOne);
HWY_EXPORT(LargestSum);

float LargestMagnitude(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(LargestOne)(values);
}

float LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b) {
  return HWY_DYNAMIC_DISPATCH(LargestSum)(a, b);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
