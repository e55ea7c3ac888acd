#include "kernels/cuda/add.h"

#include "kernels/add.h"
#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

using AddTwinTest = TwinTest;

TEST_F(AddTwinTest, TheSumsAreTheCpus) {
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

}  // namespace
}  // namespace thinwire::kernels::cuda
