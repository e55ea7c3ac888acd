#include "kernels/cuda/ops/sparse.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/sparse.h"

namespace thinwire::kernels::cuda {
namespace {

using SparseTwinTest = CudaTest;

TEST_F(SparseTwinTest, AllThreeFunctionsEqualTheCpus) {
  ForEachCase([&](const std::vector<float>& array, uint32_t seed) {
    std::vector<uint32_t> indices;
    for (uint32_t i = seed % 3; i < array.size(); i += 1 + seed % 7) indices.push_back(i);
    const std::vector<float> values = ValuesOf(Kind::kRandom, indices.size(), seed + 1000);
    std::vector<float> gathered(indices.size()), scattered = array, added = array;
    kernels::Gather(array, indices, gathered);
    kernels::Scatter(indices, values, 0.3f, scattered);
    kernels::ScatterAdd(indices, values, 0.3f, added);

    DeviceArray<uint32_t> device_indices(indices, stream_);
    DeviceArray<float> device_values(values, stream_), device_gathered(indices.size(), stream_);
    DeviceArray<float> device_scattered(array, stream_), device_added(array, stream_);
    Expect(Gather(device_added.span(), device_indices.span(), device_gathered.span(), stream_));
    Expect(Scatter(device_indices.span(), device_values.span(), 0.3f, device_scattered.span(),
                   stream_));
    Expect(ScatterAdd(device_indices.span(), device_values.span(), 0.3f, device_added.span(),
                      stream_));
    ExpectSameBits(device_gathered.Read(), gathered);
    ExpectSameBits(device_scattered.Read(), scattered);
    ExpectSameBits(device_added.Read(), added);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
