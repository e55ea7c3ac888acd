#include "kernels/update/update_momentum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/update_momentum.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct MomentumFormula {
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, size_t i) const {
    const auto momentum = hn::Set(d, step.momentum);
    const auto old = hn::LoadU(d, masters + i);
    auto g = GradientAt(d, step.gradient_scale, step.weight_decay, sum + i, old);
    if (step.factor != 1) g = Saturated(d, hn::Mul(hn::Set(d, step.factor), g));
    const auto u = Saturated(d, hn::Add(hn::Mul(momentum, hn::LoadU(d, velocity + i)), g));
    hn::StoreU(u, d, velocity + i);
    auto direction = step.nesterov ? hn::Add(g, hn::Mul(momentum, u)) : u;
    // Infinity times a learning rate of 0 would be NaN.
    if (step.learning_rate == 0) direction = Saturated(d, direction);
    const auto move = hn::Mul(hn::Set(d, step.learning_rate), direction);
    const auto x = Saturated(d, hn::Sub(old, move));
    hn::StoreU(x, d, masters + i);
    return hn::Max(hn::Abs(x), hn::Abs(u));
  }

  MomentumStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
  float* HWY_RESTRICT velocity;
};

bool MomentumLoop(const MomentumStep& step, std::span<const float> sum, std::span<float> masters,
                  std::span<float> velocity) {
  return UpdateEachVector(sum.size(), masters.data(),
                          MomentumFormula{step, sum.data(), masters.data(), velocity.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(MomentumLoop);

bool UpdateMomentum(const MomentumStep& step, std::span<const float> sum, std::span<float> masters,
                    std::span<float> velocity) {
  return HWY_DYNAMIC_DISPATCH(MomentumLoop)(step, sum, masters, velocity);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
