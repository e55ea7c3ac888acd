#include "kernels/update/update_average.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_average.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

void AverageLoop(float part, std::span<const float> values, std::span<float> averages) {
  const float* HWY_RESTRICT x = values.data();
  float* HWY_RESTRICT average = averages.data();
  ForEachAlignedVector(values.size(), average, [&](auto d, size_t i) HWY_ATTR {
    const auto old = hn::LoadU(d, average + i);
    const auto difference = Saturated(d, hn::Sub(hn::LoadU(d, x + i), old));
    hn::StoreU(hn::Add(old, hn::Mul(hn::Set(d, part), difference)), d, average + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(AverageLoop);

void UpdateAverage(float part, std::span<const float> values, std::span<float> averages) {
  HWY_DYNAMIC_DISPATCH(AverageLoop)(part, values, averages);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
