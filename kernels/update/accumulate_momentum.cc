#include "kernels/update/accumulate_momentum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/update/accumulate_momentum.cc"
#include <hwy/foreach_target.h>
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include <hwy/highway.h>

#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

struct HeavyBallFormula {
  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto g = hn::LoadU(d, gradient + i);
    hn::StoreU(hn::Add(hn::Mul(hn::Set(d, momentum), hn::LoadU(d, u + i)), g), d, u + i);
  }

  float momentum;
  const float* HWY_RESTRICT gradient;
  float* HWY_RESTRICT u;
};

struct NesterovFormula {
  template <class D>
  HWY_INLINE void operator()(D d, size_t i) const {
    const auto m = hn::Set(d, momentum);
    const auto g = hn::LoadU(d, gradient + i);
    const auto next = hn::Add(hn::Mul(m, hn::LoadU(d, u + i)), g);
    hn::StoreU(next, d, u + i);
    hn::StoreU(hn::Add(g, hn::Mul(m, next)), d, direction + i);
  }

  float momentum;
  const float* HWY_RESTRICT gradient;
  float* HWY_RESTRICT u;
  float* HWY_RESTRICT direction;
};

void HeavyBallLoop(float momentum, std::span<const float> gradient, std::span<float> u) {
  ForEachAlignedVector(u.size(), u.data(), HeavyBallFormula{momentum, gradient.data(), u.data()});
}

void NesterovLoop(float momentum, std::span<const float> gradient, std::span<float> u,
                  std::span<float> direction) {
  ForEachAlignedVector(u.size(), u.data(),
                       NesterovFormula{momentum, gradient.data(), u.data(), direction.data()});
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(HeavyBallLoop);
HWY_EXPORT(NesterovLoop);

void AccumulateMomentum(float momentum, std::span<const float> gradient, std::span<float> u) {
  HWY_DYNAMIC_DISPATCH(HeavyBallLoop)(momentum, gradient, u);
}

void AccumulateNesterov(float momentum, std::span<const float> gradient, std::span<float> u,
                        std::span<float> direction) {
  HWY_DYNAMIC_DISPATCH(NesterovLoop)(momentum, gradient, u, direction);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
