#include "kernels/select/collect.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select/collect.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"
#include "kernels/compress-inl.h"
#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Collects the values of an array whose magnitude is at least a threshold. For each input vector,
// Add() moves the found lanes to the front and stores the whole vector after the values found so
// far. The next call overwrites the superfluous lanes. Storing them takes less time than a
// mispredicted branch.
class Collector {
 public:
  Collector(uint32_t smallest, const IndexedValues& found)
      : smallest_(smallest),
        room_(found.indices.size() - kCollectPadding),
        indices_(found.indices.data()),
        values_(found.values.data()) {}

  template <class D>
  HWY_INLINE void Add(D df, hn::Vec<D> values, hn::Vec<hn::RebindToUnsigned<D>> index) {
    const hn::RebindToSigned<D> di;
    const hn::RebindToUnsigned<D> du;
    const auto magnitude = hn::BitCast(di, hn::Abs(values));
    const auto below = hn::Lt(magnitude, hn::Set(di, static_cast<int32_t>(smallest_)));
    const auto found = hn::Not(below);
    // CompressLanes() and StoreU() together replace CompressStore(), which takes a hundred cycles on
    // some processors.
    hn::StoreU(CompressLanes(du, index, hn::RebindMask(du, found)), du, indices_ + count_);
    hn::StoreU(CompressLanes(df, values, hn::RebindMask(df, found)), df, values_ + count_);
    // The output arrays can store `room_` values. If more values are found, `count_` stays at one
    // more than `room_`, and all later vectors are stored at that position.
    count_ = std::min(count_ + hn::CountTrue(di, found), room_ + 1);
  }

  std::optional<size_t> count() const {
    return count_ <= room_ ? std::optional<size_t>(count_) : std::nullopt;
  }

 private:
  const uint32_t smallest_;
  const size_t room_;
  uint32_t* const indices_;
  float* const values_;
  size_t count_ = 0;
};

std::optional<size_t> CollectAll(std::span<const float> values, uint32_t smallest,
                                 const IndexedValues& found) {
  Collector collector(smallest, found);
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    collector.Add(d, hn::LoadU(d, values.data() + i), hn::Iota(du, static_cast<uint32_t>(i)));
  });
  return collector.count();
}

std::optional<size_t> AddAndCollectAll(std::span<const float> gradient, std::span<float> values,
                                       uint32_t smallest, const IndexedValues& found) {
  Collector collector(smallest, found);
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    float* at = values.data() + i;
    const auto sum = hn::Add(hn::LoadU(d, at), hn::LoadU(d, gradient.data() + i));
    hn::StoreU(sum, d, at);
    collector.Add(d, sum, hn::Iota(du, static_cast<uint32_t>(i)));
  });
  return collector.count();
}

std::optional<size_t> CollectAmong(const IndexedValues& candidates, uint32_t smallest,
                                   const IndexedValues& found) {
  Collector collector(smallest, found);
  ForEachVector(candidates.values.size(), [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    // FOUND and CANDIDATES may be the same arrays, because the loop loads each vector before it
    // writes, and never writes to values that are not yet loaded.
    const auto index = hn::LoadU(du, candidates.indices.data() + i);
    collector.Add(d, hn::LoadU(d, candidates.values.data() + i), index);
  });
  return collector.count();
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(CollectAll);
HWY_EXPORT(AddAndCollectAll);
HWY_EXPORT(CollectAmong);

std::optional<size_t> CollectAtLeast(std::span<const float> values, uint32_t smallest,
                                     const IndexedValues& found) {
  return HWY_DYNAMIC_DISPATCH(CollectAll)(values, smallest, found);
}

std::optional<size_t> AddAndCollectAtLeast(std::span<const float> gradient, std::span<float> values,
                                           uint32_t smallest, const IndexedValues& found) {
  return HWY_DYNAMIC_DISPATCH(AddAndCollectAll)(gradient, values, smallest, found);
}

std::optional<size_t> CollectAtLeast(const IndexedValues& candidates, uint32_t smallest,
                                     const IndexedValues& found) {
  return HWY_DYNAMIC_DISPATCH(CollectAmong)(candidates, smallest, found);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
