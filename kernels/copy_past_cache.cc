#include "kernels/copy_past_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy_past_cache.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void CopyPastCache(std::span<const float> from, std::span<float> to) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  // Non-temporal stores need full, aligned vectors. The first values up to an aligned address are
  // copied one by one.
  const size_t misaligned = reinterpret_cast<uintptr_t>(to.data()) / sizeof(float) % lanes;
  i = std::min(misaligned == 0 ? 0 : lanes - misaligned, to.size());
  std::copy_n(from.begin(), i, to.begin());
  for (; i + lanes <= to.size(); i += lanes) {
    hn::Stream(hn::LoadU(df, from.data() + i), df, to.data() + i);
  }
  hwy::FlushStream();
#endif
  std::copy(from.begin() + i, from.end(), to.begin() + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(CopyPastCache);

void CopyPastCache(std::span<const float> from, std::span<float> to) {
  HWY_DYNAMIC_DISPATCH(CopyPastCache)(from, to);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
