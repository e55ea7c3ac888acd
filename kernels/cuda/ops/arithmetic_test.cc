#include "kernels/cuda/ops/arithmetic.h"

#include "kernels/arithmetic.h"
#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

using ArithmeticTwinTest = CudaTest;

TEST_F(ArithmeticTwinTest, SumsEqualTheCpus) {
  for (const size_t offset : {0, 1}) {
    ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
      std::vector<float> sum = ValuesOf(Kind::kRandom, values.size(), seed + 1000);
      DeviceArray<float> device_values(values, stream_, offset), device_sum(sum, stream_);
      kernels::Add(values, sum);
      Expect(Add(device_values.span(), device_sum.span(), stream_));
      ExpectSameBits(device_sum.Read(), sum);
    });
  }
}

TEST_F(ArithmeticTwinTest, ProductsEqualTheCpus) {
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
