#include "kernels/sums.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sums.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kParts = 16;

using Doubles = hn::CappedTag<double, kParts>;
using HalfFloats = hn::Rebind<float, Doubles>;
using Parts = std::array<double, kParts>;

HWY_INLINE void AddTo(double* parts, hn::Vec<HalfFloats> values) {
  const Doubles d;
  hn::StoreU(hn::Add(hn::LoadU(d, parts), hn::PromoteTo(d, values)), d, parts);
}

SignSums SumAll(std::span<const float> values) {
  const HalfFloats d;
  const hn::RebindToSigned<HalfFloats> di;
  Parts positive = {}, negative = {};
  SignSums sums;
  size_t i = 0;
  for (; i + kParts <= values.size(); i += kParts) {
    for (size_t part = 0; part < kParts; part += hn::Lanes(d)) {
      const auto value = hn::LoadU(d, values.data() + i + part);
      const auto below = hn::Lt(hn::BitCast(di, value), hn::Zero(di));
      AddTo(positive.data() + part, hn::IfThenZeroElse(hn::RebindMask(d, below), value));
      AddTo(negative.data() + part, hn::IfThenElseZero(hn::RebindMask(d, below), value));
      sums.negative_count += hn::CountTrue(di, below);
    }
  }
  for (; i < values.size(); ++i) {
    const bool below = std::signbit(values[i]);
    (below ? negative : positive)[i % kParts] += values[i];
    sums.negative_count += below;
  }
  for (const double part : positive) sums.positive += part;
  for (const double part : negative) sums.negative += part;
  return sums;
}

Range RangeAll(std::span<const float> values) {
  const hn::ScalableTag<float> d;
  // A NaN is neither less nor more.
  auto least = hn::Zero(d), most = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= values.size(); i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, values.data() + i);
    least = hn::IfThenElse(hn::Lt(value, least), value, least);
    most = hn::IfThenElse(hn::Gt(value, most), value, most);
  }
  Range range = {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
  for (; i < values.size(); ++i) {
    range.least = std::min(range.least, values[i]);
    range.most = std::max(range.most, values[i]);
  }
  return range;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(SumAll);
HWY_EXPORT(RangeAll);

SignSums SumBySign(std::span<const float> values) { return HWY_DYNAMIC_DISPATCH(SumAll)(values); }

Range RangeWithZero(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(RangeAll)(values);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
