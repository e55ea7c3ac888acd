#include "kernels/update/update_adagrad.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_adagrad.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct AdagradFormula {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto old = hn::LoadU(d, masters + i);
    const auto g =
        GradientAt(d, step.gradient_scale, step.weight_decay, sum + i, old, kLargestSquarable);
    const auto s = Saturated(d, hn::Add(hn::LoadU(d, squares + i), hn::Mul(g, g)));
    hn::StoreU(s, d, squares + i);
    const auto root = hn::Add(hn::Sqrt(s), hn::Set(d, step.epsilon));
    const auto move = hn::Mul(hn::Set(d, step.learning_rate), hn::Div(g, root));
    const auto x = Saturated(d, hn::Sub(old, move));
    hn::StoreU(x, d, masters + i);
    return hn::Max(hn::Abs(x), s);
  }

  AdagradStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
  float* HWY_RESTRICT squares;
};

bool AdagradLoop(const AdagradStep& step, std::span<const float> sum, std::span<float> masters,
                 std::span<float> square_sum) {
  return UpdateEachVector(sum.size(), masters.data(),
                          AdagradFormula{step, sum.data(), masters.data(), square_sum.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(AdagradLoop);

bool UpdateAdagrad(const AdagradStep& step, std::span<const float> sum, std::span<float> masters,
                   std::span<float> square_sum) {
  return HWY_DYNAMIC_DISPATCH(AdagradLoop)(step, sum, masters, square_sum);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
