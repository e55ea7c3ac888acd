#include "kernels/update/update_adam.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_adam.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct AdamFormula {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto old = hn::LoadU(d, masters + i);
    const auto g =
        GradientAt(d, step.gradient_scale, step.weight_decay, sum + i, old, kLargestSquarable);
    // The limit of g bounds both moments, so they need no saturation.
    const auto m = hn::Add(hn::Mul(hn::Set(d, step.beta1), hn::LoadU(d, first + i)),
                           hn::Mul(hn::Set(d, step.one_minus_beta1), g));
    const auto v = hn::Add(hn::Mul(hn::Set(d, step.beta2), hn::LoadU(d, second + i)),
                           hn::Mul(hn::Mul(hn::Set(d, step.one_minus_beta2), g), g));
    hn::StoreU(m, d, first + i);
    hn::StoreU(v, d, second + i);
    const auto root =
        hn::Add(hn::Mul(hn::Set(d, step.root_scale), hn::Sqrt(v)), hn::Set(d, step.epsilon));
    // Infinity - infinity and 0 * infinity would be NaN. They can occur only with these steps.
    auto shrunk = hn::Mul(hn::Set(d, step.shrink), old);
    if (std::abs(step.shrink) > 1) shrunk = Saturated(d, shrunk);
    auto ratio = hn::Div(m, root);
    if (step.step_size == 0) ratio = Saturated(d, ratio);
    const auto x = Saturated(d, hn::Sub(shrunk, hn::Mul(hn::Set(d, step.step_size), ratio)));
    hn::StoreU(x, d, masters + i);
    return hn::Abs(x);
  }

  AdamStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
  float* HWY_RESTRICT first;
  float* HWY_RESTRICT second;
};

bool AdamLoop(const AdamStep& step, std::span<const float> sum, std::span<float> masters,
              std::span<float> first_moment, std::span<float> second_moment) {
  return UpdateEachVector(
      sum.size(), masters.data(),
      AdamFormula{step, sum.data(), masters.data(), first_moment.data(), second_moment.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(AdamLoop);

bool UpdateAdam(const AdamStep& step, std::span<const float> sum, std::span<float> masters,
                std::span<float> first_moment, std::span<float> second_moment) {
  return HWY_DYNAMIC_DISPATCH(AdamLoop)(step, sum, masters, first_moment, second_moment);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
