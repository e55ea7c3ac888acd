// Loops over arrays of floats for Highway kernels, one vector per iteration. The same code then
// handles the remaining values, which do not fill a vector, in vectors of one lane:
//
//   ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
//     ... hn::LoadU(d, values + i) ...
//   });
//
// If the body uses only operations that IEEE 754 rounds correctly (+ - * / sqrt), and no fused
// multiply-add, its results have the same bits at every position of an array and with every
// instruction set.
//
// UpdateEachVector(), GradientAt() and Saturated() belong to the optimizer kernels, whose results
// are always finite.
//
// Highway compiles a kernel once per instruction set. Each time, the kernel includes this header,
// before its own HWY_BEFORE_NAMESPACE.
#if defined(THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#undef THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#else
#define THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

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
// of the vector size. The arrays of a shard usually have the same alignment, so aligning the
// accesses to ARRAY also aligns the accesses to the other arrays. No access then crosses a cache
// line.
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

// Returns VALUES limited to magnitudes of at most LIMIT. REQUIRES: no value is NaN.
template <class D>
HWY_INLINE hn::Vec<D> Limited(D d, float limit, hn::Vec<D> values) {
  return hn::Clamp(values, hn::Set(d, -limit), hn::Set(d, limit));
}

// Returns VALUES with infinities replaced by the largest finite float. REQUIRES: no value is NaN.
template <class D>
HWY_INLINE hn::Vec<D> Saturated(D d, hn::Vec<D> values) {
  return Limited(d, std::numeric_limits<float>::max(), values);
}

// Applies an optimizer's formula to every value. Calls body(d, i) like ForEachAlignedVector(). For
// each value, body returns the larger magnitude of its new master and its new slots. Returns
// whether one of these magnitudes is the largest finite float.
template <class Body>
HWY_INLINE bool UpdateEachVector(size_t count, const float* masters, const Body& body) {
  const hn::ScalableTag<float> whole;
  const hn::CappedTag<float, 1> one;
  auto of_vectors = hn::Zero(whole);
  auto of_singles = hn::Zero(one);
  ForEachAlignedVector(count, masters, [&](auto d, size_t i) HWY_ATTR {
    if constexpr (std::is_same_v<decltype(d), hn::CappedTag<float, 1>>) {
      of_singles = hn::Max(of_singles, body(d, i));
    } else {
      of_vectors = hn::Max(of_vectors, body(d, i));
    }
  });
  const float largest =
      std::max(hn::GetLane(hn::MaxOfLanes(whole, of_vectors)), hn::GetLane(of_singles));
  return largest >= std::numeric_limits<float>::max();
}

// Returns the gradient that the optimizer kernels apply: scale * sum + weight_decay * masters,
// where `masters` are the parameters, limited to magnitudes of at most LIMIT. Omits the second term if weight_decay is 0. REQUIRES:
// scale * sum is finite.
template <class D>
HWY_INLINE hn::Vec<D> GradientAt(D d, float scale, float weight_decay,
                                 const float* HWY_RESTRICT sum, hn::Vec<D> masters,
                                 float limit = std::numeric_limits<float>::max()) {
  hn::Vec<D> gradient = hn::Mul(hn::Set(d, scale), hn::LoadU(d, sum));
  if (weight_decay == 0 && limit == std::numeric_limits<float>::max()) return gradient;
  if (weight_decay != 0) {
    gradient = hn::Add(gradient, hn::Mul(hn::Set(d, weight_decay), masters));
  }
  return Limited(d, limit, gradient);
}

// A limit for GradientAt() with which the squares of gradients are finite.
inline constexpr float kLargestSquarable = 0x1p63f;

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#endif  // include guard, one per instruction set
