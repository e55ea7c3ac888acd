#include "kernels/cuda/scale.h"

#include "kernels/cuda/twin_test.h"
#include "kernels/scale.h"

namespace thinwire::kernels::cuda {
namespace {

using ScaleTwinTest = TwinTest;

TEST_F(ScaleTwinTest, ProductsAreTheCpus) {
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    const float factor = 1.0f / static_cast<float>(seed);
    std::vector<float> want(values.size());
    ScaleFinite(factor, values, want);
    DeviceArray<float> got(values, stream_, seed % 2);
    Expect(Scale(factor, got.span(), stream_));
    ExpectSameBits(got.Read(), want);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
