// Loops over arrays of floats for Highway kernels, one vector per iteration. The same code then
// handles the remaining values, which do not fill a vector, in vectors of one lane:
//
//   ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
//     ... hn::LoadU(d, values + i) ...
//   });
//
// If the body uses only operations that IEEE 754 rounds correctly (+ - * / sqrt), and no fused
// multiply-add, its results have the same bits at every position of an array and on every target.
//
// Highway kernels include this header once per target, before their own HWY_BEFORE_NAMESPACE.
#if defined(THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#undef THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#else
#define THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(d, i) once per full vector: i is the vector's first index, d the Highway tag of a full
// vector. Then calls body(d, i) once per remaining index with the tag of a one-lane vector.
template <class Body>
HWY_INLINE void ForEachVector(size_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) body(d, i);
  for (; i < count; ++i) body(one, i);
}

// Like ForEachVector(), but first handles single values until the address ARRAY + i is a multiple
// of the vector size. The arrays of a shard usually have the same alignment, so no vector access to
// any of them then crosses a cache line.
template <class Body>
HWY_INLINE void ForEachAlignedVector(size_t count, const float* array, const Body& body) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(whole);
  const size_t past_boundary = reinterpret_cast<uintptr_t>(array) / sizeof(float) % lanes;
  const size_t boundary = past_boundary == 0 ? 0 : lanes - past_boundary;
  size_t i = 0;
  for (; i < boundary && i < count; ++i) body(one, i);
  for (; i + lanes <= count; i += lanes) body(whole, i);
  for (; i < count; ++i) body(one, i);
}

// Returns the gradient that the optimizer kernels apply: scale * sum + weight_decay * masters.
// Omits the second term if weight_decay is 0.
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

#endif  // included once per target
