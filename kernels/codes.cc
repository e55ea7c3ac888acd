#include "kernels/codes.h"

#include <algorithm>
#include <array>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/codes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using OneFloat = hn::CappedTag<float, 1>;

// Few thresholds are counted, many searched in halves: both give how many are at or below.
constexpr size_t kMostCounted = 15;

template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> CountThresholds(D d, hn::Vec<D> magnitude,
                                                          std::span<const float> thresholds) {
  const hn::RebindToSigned<D> di;
  auto count = hn::Zero(di);
  if (thresholds.size() <= kMostCounted) {
    for (const float threshold : thresholds) {
      // A mask's vector is -1 where it is set.
      const auto reached = hn::Ge(magnitude, hn::Set(d, threshold));
      count = hn::Sub(count, hn::VecFromMask(di, hn::RebindMask(di, reached)));
    }
    return count;
  }
  for (auto half = static_cast<int32_t>(thresholds.size() / 2 + 1); half > 0; half /= 2) {
    const auto middle = hn::GatherIndex(d, thresholds.data() + half - 1, count);
    const auto reached = hn::RebindMask(di, hn::Ge(magnitude, middle));
    count = hn::Add(count, hn::IfThenElseZero(reached, hn::Set(di, half)));
  }
  return count;
}

template <class D>
HWY_INLINE void CodesAt(D d, const float* values, std::span<const float> thresholds, int bits,
                        uint8_t* codes) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto value = hn::LoadU(d, values);
  const auto count = CountThresholds(d, hn::Abs(value), thresholds);
  const auto sign = hn::ShiftRight<31>(hn::BitCast(du, value));
  const auto code = hn::Or(count, hn::BitCast(di, hn::ShiftLeftSame(sign, bits - 1)));
  const hn::Rebind<uint8_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes);
}

void CodesAll(std::span<const float> values, std::span<const float> thresholds, int bits,
              std::span<uint8_t> codes) {
  const Floats d;
  const OneFloat one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= values.size(); i += hn::Lanes(d)) {
    CodesAt(d, values.data() + i, thresholds, bits, codes.data() + i);
  }
  for (; i < values.size(); ++i) {
    CodesAt(one, values.data() + i, thresholds, bits, codes.data() + i);
  }
}

// Calls use(i, entries) for each vector of codes, `entries` being theirs. A table of up to a vector
// stays in a register.
template <typename Use>
HWY_INLINE size_t ForEachEntries(std::span<const uint8_t> codes, std::span<const float> table,
                                 const Use& use) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const hn::Rebind<uint8_t, Floats> narrow;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (table.size() <= lanes) {
    std::array<float, hn::MaxLanes(Floats())> padded = {};
    std::ranges::copy(table, padded.begin());
    const auto entries = hn::LoadU(d, padded.data());
    for (; i + lanes <= codes.size(); i += lanes) {
      const auto index = hn::PromoteTo(di, hn::LoadU(narrow, codes.data() + i));
      use(i, hn::TableLookupLanes(entries, hn::IndicesFromVec(d, index)));
    }
    return i;
  }
  for (; i + lanes <= codes.size(); i += lanes) {
    const auto index = hn::PromoteTo(di, hn::LoadU(narrow, codes.data() + i));
    use(i, hn::GatherIndex(d, table.data(), index));
  }
  return i;
}

void LookUpAll(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out) {
  const Floats d;
  size_t i = ForEachEntries(codes, table, [&](size_t at, auto entries) HWY_ATTR {
    hn::StoreU(entries, d, out.data() + at);
  });
  for (; i < codes.size(); ++i) out[i] = table[codes[i]];
}

void LookUpAddAll(std::span<const uint8_t> codes, std::span<const float> table,
                  std::span<float> sum) {
  const Floats d;
  size_t i = ForEachEntries(codes, table, [&](size_t at, auto entries) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, sum.data() + at), entries), d, sum.data() + at);
  });
  for (; i < codes.size(); ++i) sum[i] += table[codes[i]];
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(CodesAll);
HWY_EXPORT(LookUpAll);
HWY_EXPORT(LookUpAddAll);

void CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                       std::span<uint8_t> codes) {
  HWY_DYNAMIC_DISPATCH(CodesAll)(values, thresholds, bits, codes);
}

void LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(LookUpAll)(codes, table, out);
}

void LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(LookUpAddAll)(codes, table, sum);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
