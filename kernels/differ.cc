#include "kernels/differ.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/differ.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"
#include "kernels/compress-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

std::optional<size_t> CollectDifferentAll(std::span<const float> a, std::span<const float> b,
                                          std::span<uint32_t> indices) {
  const size_t room = indices.size() - kDifferPadding;
  size_t count = 0;
  // Compares the vectors that begin at index I, and appends the positions that differ to INDICES.
  // Returns false if INDICES is too small.
  const auto compare = [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> du;
    const auto left = hn::BitCast(du, hn::LoadU(d, a.data() + i));
    const auto right = hn::BitCast(du, hn::LoadU(d, b.data() + i));
    const auto differ = hn::Ne(left, right);
    if (HWY_LIKELY(hn::AllFalse(du, differ))) return true;
    const auto index = hn::Iota(du, static_cast<uint32_t>(i));
    // CompressLanes() and StoreU() together replace CompressStore(), which takes a hundred cycles on
    // some processors.
    hn::StoreU(CompressLanes(du, index, differ), du, indices.data() + count);
    count += hn::CountTrue(du, differ);
    return count <= room;
  };
  const hn::ScalableTag<float> df;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(df) <= a.size(); i += hn::Lanes(df)) {
    if (!compare(df, i)) return std::nullopt;
  }
  for (; i < a.size(); ++i) {
    if (!compare(one, i)) return std::nullopt;
  }
  return count;
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(CollectDifferentAll);

std::optional<size_t> CollectDifferent(std::span<const float> a, std::span<const float> b,
                                       std::span<uint32_t> indices) {
  return HWY_DYNAMIC_DISPATCH(CollectDifferentAll)(a, b, indices);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
