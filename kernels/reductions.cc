#include "kernels/reductions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reductions.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector has at most half as many lanes as there are partial sums. AddColumns() can therefore
// keep partial sums in two vectors and add to them in turn. Consecutive additions are then
// independent, and the processor can overlap them.
using Doubles = hn::CappedTag<double, kSumParts / 2>;
using HalfFloats = hn::Rebind<float, Doubles>;
using OneFloat = hn::CappedTag<float, 1>;

// Number of values per block. An instruction set with short vectors needs several passes over a
// block to compute the 16 partial sums. The block is small enough to stay in the first-level cache
// during these passes.
constexpr size_t kBlock = 2048;
static_assert(kBlock % kSumParts == 0 && kSumRun % kBlock == 0);

struct Parts {
  std::array<double, kSumParts> positive = {};
  std::array<double, kSumParts> negative = {};
  size_t negative_count = 0;

  SignSums Sum() const {
    SignSums sums = {.negative_count = negative_count};
    for (const double part : positive) sums.positive += part;
    for (const double part : negative) sums.negative += part;
    return sums;
  }
};

// Treats values BEGIN to END - 1 as a matrix with kSumParts columns, and adds each column to its
// partial sum. One call handles as many columns as two SIMD registers have lanes, beginning with
// column PART. VALUE(tag, i) returns a register with the values from index i on. REQUIRES: BEGIN
// and END are multiples of kSumParts.
template <typename Value>
HWY_INLINE void AddColumns(size_t begin, size_t end, size_t part, const Value& value,
                           Parts& parts) {
  const Doubles d;
  const HalfFloats df;
  const hn::RebindToSigned<HalfFloats> di;
  const size_t lanes = hn::Lanes(d);
  double* const positive = parts.positive.data() + part;
  double* const negative = parts.negative.data() + part;
  auto positive0 = hn::LoadU(d, positive), positive1 = hn::LoadU(d, positive + lanes);
  auto negative0 = hn::LoadU(d, negative), negative1 = hn::LoadU(d, negative + lanes);
  size_t count = 0;
  const auto add = [&](auto values, auto& to_positive, auto& to_negative) HWY_ATTR {
    const auto below = hn::Lt(hn::BitCast(di, values), hn::Zero(di));
    const auto mask = hn::RebindMask(df, below);
    to_positive = hn::Add(to_positive, hn::PromoteTo(d, hn::IfThenZeroElse(mask, values)));
    to_negative = hn::Add(to_negative, hn::PromoteTo(d, hn::IfThenElseZero(mask, values)));
    count += hn::CountTrue(di, below);
  };
  for (size_t i = begin + part; i < end; i += kSumParts) {
    add(value(df, i), positive0, negative0);
    add(value(df, i + lanes), positive1, negative1);
  }
  hn::StoreU(positive0, d, positive);
  hn::StoreU(positive1, d, positive + lanes);
  hn::StoreU(negative0, d, negative);
  hn::StoreU(negative1, d, negative + lanes);
  parts.negative_count += count;
}

// Returns the sums of values FIRST to END - 1. VALUE(tag, i) returns a vector of the values from
// index i on. It is called exactly once for each value, because it may add a gradient to the
// values. REQUIRES: FIRST is a multiple of kSumParts.
template <typename Value>
HWY_INLINE SignSums SumOfRun(size_t first, size_t end, const Value& value) {
  Parts parts;
  const size_t whole = end - end % kSumParts;
  for (size_t begin = first; begin < whole; begin += kBlock) {
    const size_t block_end = std::min(whole, begin + kBlock);
    for (size_t part = 0; part < kSumParts; part += 2 * hn::Lanes(Doubles())) {
      AddColumns(begin, block_end, part, value, parts);
    }
  }
  for (size_t i = whole; i < end; ++i) {
    const float v = hn::GetLane(value(OneFloat(), i));
    (std::signbit(v) ? parts.negative : parts.positive)[i % kSumParts] += v;
    parts.negative_count += std::signbit(v);
  }
  return parts.Sum();
}

template <typename Value>
HWY_INLINE SignSums SumOf(size_t count, const Value& value) {
  Parts runs;
  for (size_t first = 0; first < count; first += kSumRun) {
    const SignSums run = SumOfRun(first, std::min(count, first + kSumRun), value);
    const size_t part = first / kSumRun % kSumParts;
    runs.positive[part] += run.positive;
    runs.negative[part] += run.negative;
    runs.negative_count += run.negative_count;
  }
  return runs.Sum();
}

// Adds the squares of scale * VALUES to PARTS, like AddColumns(). REQUIRES: the number of values is a
// multiple of kSumParts.
HWY_INLINE void AddSquares(std::span<const float> values, float scale,
                           std::array<double, kSumParts>& parts) {
  const Doubles d;
  const HalfFloats df;
  const size_t lanes = hn::Lanes(d);
  const auto square = [&](size_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::Set(df, scale), hn::LoadU(df, values.data() + i));
    const auto wide = hn::PromoteTo(d, scaled);
    return hn::Mul(wide, wide);
  };
  for (size_t part = 0; part < kSumParts; part += 2 * lanes) {
    auto sum0 = hn::LoadU(d, parts.data() + part);
    auto sum1 = hn::LoadU(d, parts.data() + part + lanes);
    for (size_t i = part; i < values.size(); i += kSumParts) {
      sum0 = hn::Add(sum0, square(i));
      sum1 = hn::Add(sum1, square(i + lanes));
    }
    hn::StoreU(sum0, d, parts.data() + part);
    hn::StoreU(sum1, d, parts.data() + part + lanes);
  }
}

double SumSquaresOfRun(std::span<const float> values, float scale) {
  std::array<double, kSumParts> parts = {};
  const size_t whole = values.size() - values.size() % kSumParts;
  for (size_t begin = 0; begin < whole; begin += kBlock) {
    AddSquares(values.subspan(begin, std::min(kBlock, whole - begin)), scale, parts);
  }
  for (size_t i = whole; i < values.size(); ++i) {
    const double scaled = scale * values[i];
    parts[i % kSumParts] += scaled * scaled;
  }
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

double SumAllSquares(std::span<const float> values, float scale) {
  std::array<double, kSumParts> runs = {};
  for (size_t run = 0; run * kSumRun < values.size(); ++run) {
    const size_t first = run * kSumRun;
    runs[run % kSumParts] +=
        SumSquaresOfRun(values.subspan(first, std::min(kSumRun, values.size() - first)), scale);
  }
  return std::accumulate(runs.begin(), runs.end(), 0.0);
}

template <typename Value>
HWY_INLINE Range RangeOf(size_t count, const Value& value) {
  const hn::ScalableTag<float> d;
  // The loop ignores NaNs, because both comparisons are false for a NaN.
  auto least = hn::Zero(d), most = hn::Zero(d);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto v = value(d, i);
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  Range range = {hn::GetLane(hn::MinOfLanes(d, least)), hn::GetLane(hn::MaxOfLanes(d, most))};
  for (; i < count; ++i) {
    const float v = hn::GetLane(value(OneFloat(), i));
    range.least = std::min(range.least, v);
    range.most = std::max(range.most, v);
  }
  return range;
}

// A function object: called with (d, i), loads and returns a vector of the values from index i on.
struct Loaded {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    return hn::LoadU(d, values + i);
  }
  const float* values;
};

// A function object: called with (d, i), adds the gradient to the vector of the values from index i
// on, stores the sums and returns them.
struct Added {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto sum = hn::Add(hn::LoadU(d, values + i), hn::LoadU(d, gradient + i));
    hn::StoreU(sum, d, values + i);
    return sum;
  }
  const float* gradient;
  float* values;
};

SignSums SumAll(std::span<const float> values) {
  return SumOf(values.size(), Loaded{values.data()});
}

SignSums AddAndSumAll(std::span<const float> gradient, std::span<float> values) {
  return SumOf(values.size(), Added{gradient.data(), values.data()});
}

Range RangeAll(std::span<const float> values) {
  return RangeOf(values.size(), Loaded{values.data()});
}

Range AddAndRangeAll(std::span<const float> gradient, std::span<float> values) {
  return RangeOf(values.size(), Added{gradient.data(), values.data()});
}

// Returns the largest magnitude of COUNT values; VALUE(tag, i) returns a vector of the values from
// index i on. Compares the bits of magnitudes as integers, which have the order of the floats, with
// NaNs above infinity.
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

HWY_EXPORT(SumAll);
HWY_EXPORT(AddAndSumAll);
HWY_EXPORT(RangeAll);
HWY_EXPORT(AddAndRangeAll);

SignSums SumBySign(std::span<const float> values) { return HWY_DYNAMIC_DISPATCH(SumAll)(values); }

SignSums AddAndSumBySign(std::span<const float> gradient, std::span<float> values) {
  return HWY_DYNAMIC_DISPATCH(AddAndSumAll)(gradient, values);
}

HWY_EXPORT(SumAllSquares);

double SumOfSquares(std::span<const float> values, float scale) {
  return HWY_DYNAMIC_DISPATCH(SumAllSquares)(values, scale);
}

Range RangeWithZero(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(RangeAll)(values);
}

Range AddAndRangeWithZero(std::span<const float> gradient, std::span<float> values) {
  return HWY_DYNAMIC_DISPATCH(AddAndRangeAll)(gradient, values);
}

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
