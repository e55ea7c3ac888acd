#include "kernels/update_sgd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update_sgd.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this source file again for each target and must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct SgdFormula {
  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto x = hn::LoadU(d, masters + i);
    const auto g = GradientAt(d, step.gradient_scale, step.weight_decay, sum + i, x);
    hn::StoreU(hn::Sub(x, hn::Mul(hn::Set(d, step.learning_rate), g)), d, masters + i);
  }

  SgdStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
};

void SgdLoop(const SgdStep& step, std::span<const float> sum, std::span<float> masters) {
  ForEachAlignedVector(sum.size(), masters.data(), SgdFormula{step, sum.data(), masters.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(SgdLoop);

void UpdateSgd(const SgdStep& step, std::span<const float> sum, std::span<float> masters) {
  HWY_DYNAMIC_DISPATCH(SgdLoop)(step, sum, masters);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
