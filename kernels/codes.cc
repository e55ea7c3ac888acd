#include "kernels/codes.h"

#include <algorithm>
#include <array>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/codes.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"
#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

// The kernels keep a lookup table in vector registers if it fills at most this number of vectors.
constexpr size_t kMaxTableVectors = 4;

template <class D>
using Indices = hn::Vec<hn::RebindToSigned<D>>;

// Returns table[index] for every lane of INDEX. TABLE has SIZE entries. REQUIRES: if SIZE is not a
// multiple of the vector length, the memory after the table is readable to the end of the last
// vector.
template <class D>
HWY_INLINE hn::Vec<D> Entries(D d, const float* table, size_t size, Indices<D> index) {
  const hn::RebindToSigned<D> di;
  const size_t lanes = hn::Lanes(d);
  if constexpr (hn::MaxLanes(D()) > 1) {
    if (size <= kMaxTableVectors * lanes) {
      const auto lane = hn::And(index, hn::Set(di, static_cast<int32_t>(lanes - 1)));
      const auto lane_index = hn::IndicesFromVec(d, lane);
      auto entries = hn::TableLookupLanes(hn::LoadU(d, table), lane_index);
      for (size_t first = lanes; first < size; first += lanes) {
        const auto behind = hn::Gt(index, hn::Set(di, static_cast<int32_t>(first - 1)));
        const auto here = hn::TableLookupLanes(hn::LoadU(d, table + first), lane_index);
        entries = hn::IfThenElse(hn::RebindMask(d, behind), here, entries);
      }
      return entries;
    }
  }
  return hn::GatherIndex(d, table, index);
}

// Maximum number of thresholds that are compared one by one. More thresholds are searched by
// bisection.
constexpr size_t kMaxCounted = 7;

// The thresholds as an implicit binary search tree (Eytzinger layout): nodes[2^l + p] is node p of
// level l. REQUIRES: the number of thresholds is 2^levels - 1.
struct SearchTree {
  explicit SearchTree(std::span<const float> thresholds) {
    for (size_t size = 1; size <= thresholds.size(); size *= 2) {
      const size_t half = (thresholds.size() + 1) / (2 * size);
      for (size_t p = 0; p < size; ++p) nodes[size + p] = thresholds[(2 * p + 1) * half - 1];
    }
  }
  std::array<float, kLargestTable / 2 + hn::MaxLanes(Floats())> nodes = {};
};

template <class D>
HWY_INLINE Indices<D> CountThresholds(D d, hn::Vec<D> magnitude, std::span<const float> thresholds,
                                      const SearchTree& tree) {
  const hn::RebindToSigned<D> di;
  auto count = hn::Zero(di);
  // VecFromMask() returns -1 in the lanes where the mask is true. Subtracting its result adds 1 to
  // these lanes.
  const auto plus_reached = [&](auto number, auto threshold) HWY_ATTR {
    const auto reached = hn::RebindMask(di, hn::Ge(magnitude, threshold));
    return hn::Sub(number, hn::VecFromMask(di, reached));
  };
  if (thresholds.size() <= kMaxCounted) {
    for (const float threshold : thresholds) count = plus_reached(count, hn::Set(d, threshold));
    return count;
  }
  for (size_t size = 1; size <= thresholds.size(); size *= 2) {
    const auto node = Entries(d, tree.nodes.data() + size, size, count);
    count = plus_reached(hn::Add(count, count), node);
  }
  return count;
}

// Stores one code per lane at CODES: COUNT | (sign bit of VALUE) << (bits - 1).
template <class D>
HWY_INLINE void StoreSigned(D, Indices<D> count, hn::Vec<D> value, int bits, uint8_t* codes) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto sign = hn::ShiftRight<31>(hn::BitCast(du, value));
  const auto code = hn::Or(count, hn::BitCast(di, hn::ShiftLeftSame(sign, bits - 1)));
  const hn::Rebind<uint8_t, D> narrow;
  hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes);
}

void CodesAll(std::span<const float> values, std::span<const float> thresholds, int bits,
              std::span<uint8_t> codes) {
  const SearchTree tree(thresholds);
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, values.data() + i);
    const auto count = CountThresholds(d, hn::Abs(value), thresholds, tree);
    StoreSigned(d, count, value, bits, codes.data() + i);
  });
}

// Returns trunc(X), clamped to 0 .. MOST; 0 for a NaN.
template <class D>
HWY_INLINE Indices<D> Truncated(D d, hn::Vec<D> x, float most) {
  const auto positive = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), x);
  const auto limit = hn::Set(d, most);
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(di, hn::IfThenElse(hn::Lt(positive, limit), positive, limit));
}

void StepsAll(std::span<const float> values, float step, float zero, std::span<uint8_t> codes) {
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    const auto steps = hn::Div(hn::LoadU(d, values.data() + i), hn::Set(d, step));
    const auto code = Truncated(d, hn::Add(steps, hn::Set(d, zero + 0.5f)), 255.0f);
    const hn::Rebind<uint8_t, decltype(d)> narrow;
    hn::StoreU(hn::DemoteTo(narrow, code), narrow, codes.data() + i);
  });
}

void LevelsAll(std::span<const float> values, const Levels& levels, std::span<const uint16_t> draws,
               std::span<uint8_t> codes) {
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<uint16_t, decltype(d)> d16;
    const auto draw = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d16, draws.data() + i)));
    const auto value = hn::LoadU(d, values.data() + i);
    const auto fraction = hn::Div(hn::Abs(value), hn::Set(d, levels.largest));
    const auto scaled = hn::Mul(fraction, hn::Set(d, levels.count));
    const auto dithered = hn::Add(scaled, hn::Mul(draw, hn::Set(d, 0x1p-16f)));
    StoreSigned(d, Truncated(d, dithered, levels.count), value, levels.bits, codes.data() + i);
  });
}

// Calls use(i, entries) for each full vector of codes. I is the index of the first code in the
// vector; ENTRIES contains table[code] for each code in the vector. Returns the number of codes in
// full vectors.
template <typename Use>
HWY_INLINE size_t ForEachEntries(std::span<const uint8_t> codes, std::span<const float> table,
                                 const Use& use) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const hn::Rebind<uint8_t, Floats> narrow;
  const size_t lanes = hn::Lanes(d);
  std::array<float, kMaxTableVectors * hn::MaxLanes(Floats())> padded = {};
  const float* entries = table.data();
  if (table.size() <= kMaxTableVectors * lanes) {
    std::ranges::copy(table, padded.begin());
    entries = padded.data();
  }
  size_t i = 0;
  for (; i + lanes <= codes.size(); i += lanes) {
    const auto index = hn::PromoteTo(di, hn::LoadU(narrow, codes.data() + i));
    use(i, Entries(d, entries, table.size(), index));
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
HWY_EXPORT(StepsAll);
HWY_EXPORT(LevelsAll);
HWY_EXPORT(LookUpAll);
HWY_EXPORT(LookUpAddAll);

void CodesOfMagnitudes(std::span<const float> values, std::span<const float> thresholds, int bits,
                       std::span<uint8_t> codes) {
  HWY_DYNAMIC_DISPATCH(CodesAll)(values, thresholds, bits, codes);
}

void CodesOfSteps(std::span<const float> values, float step, float zero, std::span<uint8_t> codes) {
  HWY_DYNAMIC_DISPATCH(StepsAll)(values, step, zero, codes);
}

void CodesOfLevels(std::span<const float> values, const Levels& levels,
                   std::span<const uint16_t> draws, std::span<uint8_t> codes) {
  HWY_DYNAMIC_DISPATCH(LevelsAll)(values, levels, draws, codes);
}

void LookUp(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(LookUpAll)(codes, table, out);
}

void LookUpAdd(std::span<const uint8_t> codes, std::span<const float> table, std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(LookUpAddAll)(codes, table, sum);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
