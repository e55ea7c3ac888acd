#include "kernels/update_momentum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update_momentum.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this source file again for each target and must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct MomentumFormula {
  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto momentum = hn::Set(d, step.momentum);
    const auto x = hn::LoadU(d, masters + i);
    const auto g = GradientAt(d, step.gradient_scale, step.weight_decay, sum + i, x);
    const auto u = hn::Add(hn::Mul(momentum, hn::LoadU(d, velocity + i)), g);
    hn::StoreU(u, d, velocity + i);
    const auto direction = step.nesterov ? hn::Add(g, hn::Mul(momentum, u)) : u;
    hn::StoreU(hn::Sub(x, hn::Mul(hn::Set(d, step.learning_rate), direction)), d, masters + i);
  }

  MomentumStep step;
  const float* HWY_RESTRICT sum;
  float* HWY_RESTRICT masters;
  float* HWY_RESTRICT velocity;
};

void MomentumLoop(const MomentumStep& step, std::span<const float> sum, std::span<float> masters,
                  std::span<float> velocity) {
  ForEachAlignedVector(sum.size(), masters.data(),
                       MomentumFormula{step, sum.data(), masters.data(), velocity.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(MomentumLoop);

void UpdateMomentum(const MomentumStep& step, std::span<const float> sum, std::span<float> masters,
                    std::span<float> velocity) {
  HWY_DYNAMIC_DISPATCH(MomentumLoop)(step, sum, masters, velocity);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
