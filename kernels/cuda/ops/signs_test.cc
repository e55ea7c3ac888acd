#include "kernels/cuda/ops/signs.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/signs.h"

namespace thinwire::kernels::cuda {
namespace {

using SignsTwinTest = CudaTest;

// The CPU kernels process one group per call; the GPU kernels process all groups.
TEST_F(SignsTwinTest, AllFourFunctionsEqualTheCpus) {
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    const size_t count = values.size(),
                 group = seed % 2 == 0 ? 8 * seed : std::max<size_t>(1, count);
    const std::vector<float> table =
        ValuesOf(Kind::kRandom, 2 * ((count + group - 1) / group), seed);
    std::vector<std::byte> want((count + 7) / 8);
    std::vector<float> difference = values, decoded(count), added = values;
    for (size_t first = 0; first < count; first += group) {
      const size_t n = std::min(group, count - first);
      const auto entries = std::span(table).subspan(first / group * 2).first<2>();
      std::byte* const bits = want.data() + first / 8;
      kernels::PackSignsSubtract(entries, std::span(difference).subspan(first, n), bits);
      kernels::UnpackSigns(bits, entries, std::span(decoded).subspan(first, n));
      kernels::UnpackSignsAdd(bits, entries, std::span(added).subspan(first, n));
    }
    DeviceArray<float> entries(table, stream_);
    DeviceArray<float> device_values(values, stream_), device_difference(values, stream_);
    DeviceArray<float> device_decoded(count, stream_);
    DeviceArray<std::byte> packed(want.size(), stream_, seed % 2),
        packed_again(want.size(), stream_);
    Expect(PackSigns(device_values.span(), packed.data(), stream_));
    Expect(PackSignsSubtract(entries.span(), group, device_difference.span(), packed_again.data(),
                             stream_));
    ASSERT_EQ(packed.Read(), want);
    ASSERT_EQ(packed_again.Read(), want);
    ExpectSameBits(device_difference.Read(), difference);
    Expect(UnpackSigns(packed.data(), entries.span(), group, device_decoded.span(), stream_));
    Expect(UnpackSignsAdd(packed.data(), entries.span(), group, device_values.span(), stream_));
    ExpectSameBits(device_decoded.Read(), decoded);
    ExpectSameBits(device_values.Read(), added);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
