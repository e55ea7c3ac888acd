#include "kernels/add.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/add.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again.
#include "hwy/highway.h"
#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void AddAll(std::span<const float> values, std::span<float> sum) {
  ForEachVector(sum.size(), [&](auto d, size_t i) HWY_ATTR {
    float* const at = sum.data() + i;
    hn::StoreU(hn::Add(hn::LoadU(d, at), hn::LoadU(d, values.data() + i)), d, at);
  });
}

void NegateAll(std::span<const float> values, std::span<float> out) {
  ForEachVector(out.size(), [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Neg(hn::LoadU(d, values.data() + i)), d, out.data() + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(AddAll);
HWY_EXPORT(NegateAll);

void Add(std::span<const float> values, std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(AddAll)(values, sum);
}

void Negate(std::span<const float> values, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(NegateAll)(values, out);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
