#include "kernels/cuda/ops/ulp_delta.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/select/float_order.h"

namespace thinwire::kernels::cuda {
namespace {

using UlpDeltaTest = CudaTest;

TEST_F(UlpDeltaTest, OneUlpLeadsToTheNextFloat) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, -1e-45f, 3.4e38f};
  for (const float value : values) {
    const float next = FloatOfOrdinal(OrdinalOfFloat(value) + 1);
    EXPECT_EQ(next, std::bit_cast<uint32_t>(value) == 0x80000000
                        ? 0.0f
                        : std::nextafter(value, std::numeric_limits<float>::infinity()));
  }
}

TEST_F(UlpDeltaTest, ChangesAllValuesOrThoseAtIndices) {
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<uint32_t> deltas(values.size()), indices, some_deltas;
    std::vector<float> all = values, some = values;
    for (size_t i = 0; i < values.size(); ++i) {
      deltas[i] = static_cast<uint32_t>(random()) >> (i % 32);
      all[i] = FloatOfOrdinal(OrdinalOfFloat(values[i]) + deltas[i]);
      if (i % 3 != 0) continue;
      indices.push_back(static_cast<uint32_t>(i));
      some_deltas.push_back(deltas[i]);
      some[i] = all[i];
    }
    DeviceArray<uint32_t> device_deltas(deltas, stream_), device_some(some_deltas, stream_);
    DeviceArray<uint32_t> device_indices(indices, stream_);
    DeviceArray<float> got_all(values, stream_, seed % 2), got_some(values, stream_);
    Expect(AddUlps(device_deltas.span(), got_all.span(), stream_));
    ExpectSameBits(got_all.Read(), all);
    Expect(AddUlpsAt(device_indices.span(), device_some.span(), got_some.span(), stream_));
    ExpectSameBits(got_some.Read(), some);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
