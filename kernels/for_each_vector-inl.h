// The loop of kernels whose values need no boundary: full vectors, then one value at a time by the
// same code on vectors of one lane. update_loop-inl.h has the one that aligns its writes first.
//
//   ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR { ... hn::LoadU(d, values + i) ...
//   });
//
// Included once per target, before HWY_BEFORE_NAMESPACE of its own.
#if defined(THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#undef THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#else
#define THINWIRE_KERNELS_FOR_EACH_VECTOR_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls at(d, i) for each vector's first index, then for each of the rest with a tag of one lane.
template <class At>
HWY_INLINE void ForEachVector(size_t count, const At& at) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) at(d, i);
  for (; i < count; ++i) at(one, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#endif  // per target
