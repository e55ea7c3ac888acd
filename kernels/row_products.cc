#include "kernels/row_products.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_products.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"
#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

float DotAll(std::span<const float> a, std::span<const float> b) {
  const hn::CappedTag<float, kDotParts> d;
  const size_t whole = a.size() - a.size() % kDotParts;
  std::array<float, kDotParts> parts;
  for (size_t part = 0; part < kDotParts; part += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (size_t i = part; i < whole; i += kDotParts) {
      sum = hn::Add(sum, hn::Mul(hn::LoadU(d, a.data() + i), hn::LoadU(d, b.data() + i)));
    }
    hn::StoreU(sum, d, parts.data() + part);
  }
  for (size_t i = whole; i < a.size(); ++i) parts[i - whole] += a[i] * b[i];
  float sum = 0;
  for (const float part : parts) sum += part;
  return sum;
}

void AddScaledAll(float factor, std::span<const float> values, std::span<float> sum) {
  ForEachVector(sum.size(), [&](auto d, size_t i) HWY_ATTR {
    float* const at = sum.data() + i;
    const auto products = hn::Mul(hn::Set(d, factor), hn::LoadU(d, values.data() + i));
    hn::StoreU(hn::Add(hn::LoadU(d, at), products), d, at);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(DotAll);
HWY_EXPORT(AddScaledAll);

float Dot(std::span<const float> a, std::span<const float> b) {
  return HWY_DYNAMIC_DISPATCH(DotAll)(a, b);
}

void AddScaled(float factor, std::span<const float> values, std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(AddScaledAll)(factor, values, sum);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
