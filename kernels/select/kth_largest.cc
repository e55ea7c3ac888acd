#include "kernels/select/kth_largest.h"

#include <algorithm>
#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select/kth_largest.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the number of magnitudes that are at least SMALLEST.
size_t CountAtLeast(std::span<const float> values, uint32_t smallest) {
  const hn::ScalableTag<float> df;
  const hn::RebindToSigned<decltype(df)> di;
  const auto above = hn::Set(di, static_cast<int32_t>(smallest) - 1);
  const auto count = [&](auto counted, size_t i) HWY_ATTR {
    const auto magnitude = hn::BitCast(di, hn::Abs(hn::LoadU(df, values.data() + i)));
    return hn::Sub(counted, hn::VecFromMask(di, hn::Gt(magnitude, above)));
  };
  // Two accumulators make consecutive additions independent, so the processor can overlap them.
  auto even = hn::Zero(di), odd = hn::Zero(di);
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + 2 * lanes <= values.size(); i += 2 * lanes) {
    even = count(even, i);
    odd = count(odd, i + lanes);
  }
  auto total = static_cast<size_t>(hn::GetLane(hn::SumOfLanes(di, hn::Add(even, odd))));
  for (; i < values.size(); ++i) {
    total += (std::bit_cast<uint32_t>(values[i]) & 0x7FFFFFFF) >= smallest ? 1 : 0;
  }
  return total;
}

KthMagnitude Bisect(std::span<const float> values, size_t k, uint32_t smallest) {
  // Invariants: at least k magnitudes are >= LOW. Exactly ABOVE_COUNT magnitudes are >= HIGH, and
  // ABOVE_COUNT is less than k.
  uint32_t low = smallest, high = 0x80000000;
  size_t above_count = 0;
  // The k-th largest magnitude is usually close to SMALLEST. The first trial magnitudes are
  // therefore close to SMALLEST, and the distance between them grows.
  for (uint64_t distance = 1 << 12; high - low > 1;) {
    const uint64_t middle = (uint64_t{low} + high) / 2;
    const auto at = static_cast<uint32_t>(std::min(middle, low + distance));
    distance = std::min<uint64_t>(8 * distance, high);
    const size_t count = CountAtLeast(values, at);
    if (count >= k) {
      low = at;
    } else {
      high = at;
      above_count = count;
    }
  }
  return {.bits = low, .above_count = above_count};
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(Bisect);

KthMagnitude KthLargest(std::span<const float> values, size_t k, uint32_t smallest) {
  return HWY_DYNAMIC_DISPATCH(Bisect)(values, k, smallest);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
