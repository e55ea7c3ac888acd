#include "kernels/collect.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/collect.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Collects the indices of one pass. The room is checked before each write, so that a pass that
// finds more than it has room for still runs to its end.
class Collector {
 public:
  Collector(uint32_t smallest, std::span<uint32_t> indices)
      : smallest_(smallest), room_(indices.size() - kCollectPadding), indices_(indices.data()) {}

  // The vector of VALUES at index I.
  template <class D>
  HWY_INLINE void Add(D /*tag*/, hn::Vec<D> values, size_t i) {
    const hn::RebindToSigned<D> di;
    const hn::RebindToUnsigned<D> du;
    const auto magnitude = hn::BitCast(di, hn::Abs(values));
    const auto below = hn::Lt(magnitude, hn::Set(di, static_cast<int32_t>(smallest_)));
    if (HWY_LIKELY(hn::AllTrue(di, below))) return;
    const auto found = hn::RebindMask(du, hn::Not(below));
    if (count_ <= room_) {
      const auto index = hn::Iota(du, static_cast<uint32_t>(i));
      // Not CompressStore: it takes a hundred cycles on some processors.
      hn::StoreU(hn::Compress(index, found), du, indices_ + count_);
      count_ += hn::CountTrue(du, found);
    }
  }

  std::optional<size_t> count() const {
    return count_ <= room_ ? std::optional<size_t>(count_) : std::nullopt;
  }

 private:
  const uint32_t smallest_;
  const size_t room_;
  uint32_t* const indices_;
  size_t count_ = 0;
};

std::optional<size_t> CollectAll(std::span<const float> values, uint32_t smallest,
                                 std::span<uint32_t> indices) {
  const hn::ScalableTag<float> df;
  const hn::CappedTag<float, 1> one;
  Collector collector(smallest, indices);
  size_t i = 0;
  for (; i + hn::Lanes(df) <= values.size(); i += hn::Lanes(df)) {
    collector.Add(df, hn::LoadU(df, values.data() + i), i);
  }
  for (; i < values.size(); ++i) collector.Add(one, hn::LoadU(one, values.data() + i), i);
  return collector.count();
}

std::optional<size_t> AddAndCollectAll(std::span<const float> gradient, std::span<float> values,
                                       uint32_t smallest, std::span<uint32_t> indices) {
  const hn::ScalableTag<float> df;
  const hn::CappedTag<float, 1> one;
  Collector collector(smallest, indices);
  const auto add = [&](auto d, size_t i) HWY_ATTR {
    float* at = values.data() + i;
    const auto sum = hn::Add(hn::LoadU(d, at), hn::LoadU(d, gradient.data() + i));
    hn::StoreU(sum, d, at);
    collector.Add(d, sum, i);
  };
  size_t i = 0;
  for (; i + hn::Lanes(df) <= values.size(); i += hn::Lanes(df)) add(df, i);
  for (; i < values.size(); ++i) add(one, i);
  return collector.count();
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(CollectAll);
HWY_EXPORT(AddAndCollectAll);

std::optional<size_t> CollectAtLeast(std::span<const float> values, uint32_t smallest,
                                     std::span<uint32_t> indices) {
  return HWY_DYNAMIC_DISPATCH(CollectAll)(values, smallest, indices);
}

std::optional<size_t> AddAndCollectAtLeast(std::span<const float> gradient, std::span<float> values,
                                           uint32_t smallest, std::span<uint32_t> indices) {
  return HWY_DYNAMIC_DISPATCH(AddAndCollectAll)(gradient, values, smallest, indices);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
