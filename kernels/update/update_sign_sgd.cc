#include "kernels/update/update_sign_sgd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_sign_sgd.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct SignSgdFormula {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto g = hn::Mul(hn::Set(d, step.gradient_scale), hn::LoadU(d, sum + i));
    const auto move = hn::CopySign(hn::Set(d, step.learning_rate), g);
    const auto moved = hn::IfThenZeroElse(hn::Eq(g, hn::Zero(d)), move);
    const auto shrunk = hn::Mul(hn::Set(d, step.shrink), hn::LoadU(d, masters + i));
    const auto x = Saturated(d, hn::Sub(shrunk, moved));
    hn::StoreU(x, d, masters + i);
    return hn::Abs(x);
  }

  SignSgdStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
};

bool SignSgdLoop(const SignSgdStep& step, std::span<const float> sum, std::span<float> masters) {
  return UpdateEachVector(sum.size(), masters.data(),
                          SignSgdFormula{step, sum.data(), masters.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(SignSgdLoop);

bool UpdateSignSgd(const SignSgdStep& step, std::span<const float> sum, std::span<float> masters) {
  return HWY_DYNAMIC_DISPATCH(SignSgdLoop)(step, sum, masters);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
