// The loop that every update kernel shares: full vectors, and before and after them one value at a
// time with the same formula.
//
// A Formula is an object with a member template
//
//   template <class D> void operator()(D d, size_t i) const;
//
// that updates the Lanes(d) values from index i. Because single values run through the very same
// code on vectors of one lane, a value comes out alike wherever it lies. Because a Formula uses
// only operations that IEEE 754 rounds exactly (+ - * / sqrt) and never a fused multiply-add, it
// comes out alike on every target too.
//
// Included once per target, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE of its own.
#if defined(THINWIRE_KERNELS_UPDATE_LOOP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_UPDATE_LOOP_INL_H_
#undef THINWIRE_KERNELS_UPDATE_LOOP_INL_H_
#else
#define THINWIRE_KERNELS_UPDATE_LOOP_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Begins with single values until MASTERS, one of the arrays, is at a vector's boundary. A shard's
// arrays mostly lie alike, so then the vectors of all of them cross no cache line.
template <class Formula>
HWY_INLINE void ForAllValues(size_t count, const float* masters, const Formula& formula) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(whole);
  const size_t past_boundary = reinterpret_cast<uintptr_t>(masters) / sizeof(float) % lanes;
  const size_t boundary = past_boundary == 0 ? 0 : lanes - past_boundary;
  size_t i = 0;
  for (; i < boundary && i < count; ++i) formula(one, i);
  for (; i + lanes <= count; i += lanes) formula(whole, i);
  for (; i < count; ++i) formula(one, i);
}

// scale * sum + weight_decay * masters, without the second term where there is no decay.
template <class D>
HWY_INLINE hn::Vec<D> GradientAt(D d, float scale, float weight_decay,
                                 const float* HWY_RESTRICT sum, hn::Vec<D> masters) {
  const hn::Vec<D> gradient = hn::Mul(hn::Set(d, scale), hn::LoadU(d, sum));
  if (weight_decay == 0) return gradient;
  return hn::Add(gradient, hn::Mul(hn::Set(d, weight_decay), masters));
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
