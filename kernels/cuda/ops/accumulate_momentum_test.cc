#include "kernels/cuda/ops/accumulate_momentum.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/update/accumulate_momentum.h"

namespace thinwire::kernels::cuda {
namespace {

using AccumulateMomentumTwinTest = CudaTest;

TEST_F(AccumulateMomentumTwinTest, BothFormulasHaveTheCpusBits) {
  for (const size_t offset : {0, 1}) {
    ForEachCase([&](const std::vector<float>& gradient, uint32_t seed) {
      const std::vector<float> before = ValuesOf(Kind::kRandom, gradient.size(), seed + 1000);
      std::vector<float> u = before, nesterov = before, direction(gradient.size());
      kernels::AccumulateMomentum(0.9f, gradient, u);
      kernels::AccumulateNesterov(0.9f, gradient, nesterov, direction);
      DeviceArray<float> device_gradient(gradient, stream_, offset);
      DeviceArray<float> device_u(before, stream_), device_nesterov(before, stream_);
      DeviceArray<float> device_direction(gradient.size(), stream_);
      Expect(AccumulateMomentum(0.9f, device_gradient.span(), device_u.span(), stream_));
      Expect(AccumulateNesterov(0.9f, device_gradient.span(), device_nesterov.span(),
                                device_direction.span(), stream_));
      ExpectSameBits(device_u.Read(), u);
      ExpectSameBits(device_nesterov.Read(), nesterov);
      ExpectSameBits(device_direction.Read(), direction);
    });
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
