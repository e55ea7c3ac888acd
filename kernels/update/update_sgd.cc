#include "kernels/update/update_sgd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_sgd.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct SgdFormula {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto old = hn::LoadU(d, masters + i);
    const auto g = GradientAt(d, step.gradient_scale, step.weight_decay, sum + i, old);
    const auto x = Saturated(d, hn::Sub(old, hn::Mul(hn::Set(d, step.learning_rate), g)));
    hn::StoreU(x, d, masters + i);
    return hn::Abs(x);
  }

  SgdStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
};

bool SgdLoop(const SgdStep& step, std::span<const float> sum, std::span<float> masters) {
  return UpdateEachVector(sum.size(), masters.data(), SgdFormula{step, sum.data(), masters.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(SgdLoop);

bool UpdateSgd(const SgdStep& step, std::span<const float> sum, std::span<float> masters) {
  return HWY_DYNAMIC_DISPATCH(SgdLoop)(step, sum, masters);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
