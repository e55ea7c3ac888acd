#include "kernels/update/update_lion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_lion.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct LionFormula {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto g = hn::Mul(hn::Set(d, step.gradient_scale), hn::LoadU(d, sum + i));
    const auto old = hn::LoadU(d, momentum + i);
    const auto mean = [&](float beta, float rest) HWY_ATTR {
      return hn::Add(hn::Mul(hn::Set(d, beta), old), hn::Mul(hn::Set(d, rest), g));
    };
    const auto direction = mean(step.beta1, step.one_minus_beta1);
    const auto move = hn::CopySign(hn::Set(d, step.learning_rate), direction);
    const auto moved = hn::IfThenZeroElse(hn::Eq(direction, hn::Zero(d)), move);
    // An infinite product minus a move is infinite, and never NaN, because moves are finite.
    const auto shrunk = hn::Mul(hn::Set(d, step.shrink), hn::LoadU(d, masters + i));
    const auto x = Saturated(d, hn::Sub(shrunk, moved));
    const auto m = Saturated(d, mean(step.beta2, step.one_minus_beta2));
    hn::StoreU(x, d, masters + i);
    hn::StoreU(m, d, momentum + i);
    return hn::Max(hn::Abs(x), hn::Abs(m));
  }

  LionStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
  float* HWY_RESTRICT momentum;
};

bool LionLoop(const LionStep& step, std::span<const float> sum, std::span<float> masters,
              std::span<float> momentum) {
  return UpdateEachVector(sum.size(), masters.data(),
                          LionFormula{step, sum.data(), masters.data(), momentum.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(LionLoop);

bool UpdateLion(const LionStep& step, std::span<const float> sum, std::span<float> masters,
                std::span<float> momentum) {
  return HWY_DYNAMIC_DISPATCH(LionLoop)(step, sum, masters, momentum);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
