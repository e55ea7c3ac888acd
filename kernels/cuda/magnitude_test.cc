#include "kernels/cuda/magnitude.h"

#include "kernels/cuda/twin_test.h"
#include "kernels/magnitude.h"

namespace thinwire::kernels::cuda {
namespace {

using MagnitudeTwinTest = TwinTest;

TEST_F(MagnitudeTwinTest, TheLargestIsTheCpus) {
  ForEachCase([&](const std::vector<float>& values, uint32_t) {
    DeviceArray<float> device_values(values, stream_), largest(1, stream_);
    Expect(LargestMagnitude(device_values.span(), largest.data(), stream_));
    ExpectSameBits(largest.Read(), {kernels::LargestMagnitude(values)});
  });
}

TEST_F(MagnitudeTwinTest, TheLargestOfSumsIsTheCpus) {
  for (const size_t offset : {0, 1}) {
    ForEachCase([&](const std::vector<float>& a, uint32_t seed) {
      const std::vector<float> b = ValuesOf(Kind::kRandom, a.size(), seed + 1000);
      DeviceArray<float> device_a(a, stream_), device_b(b, stream_, offset), largest(1, stream_);
      Expect(LargestMagnitudeOfSum(device_a.span(), device_b.span(), largest.data(), stream_));
      ExpectSameBits(largest.Read(), {kernels::LargestMagnitudeOfSum(a, b)});
    });
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
