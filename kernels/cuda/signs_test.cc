#include "kernels/cuda/signs.h"

#include "kernels/cuda/twin_test.h"
#include "kernels/signs.h"

namespace thinwire::kernels::cuda {
namespace {

using SignsTwinTest = TwinTest;

// Each group of the CPU's is an array of its own.
TEST_F(SignsTwinTest, AllFourDoWhatTheCpuDoes) {
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    const size_t count = values.size(),
                 group = seed % 2 == 0 ? 8 * seed : std::max<size_t>(1, count);
    const std::vector<float> table =
        ValuesOf(Kind::kRandom, 2 * ((count + group - 1) / group), seed);
    std::vector<std::byte> want((count + 7) / 8);
    std::vector<float> taken = values, decoded(count), added = values;
    for (size_t first = 0; first < count; first += group) {
      const size_t n = std::min(group, count - first);
      const auto entries = std::span(table).subspan(first / group * 2).first<2>();
      std::byte* const bits = want.data() + first / 8;
      kernels::TakeSigns(entries, std::span(taken).subspan(first, n), bits);
      kernels::FromSigns(bits, entries, std::span(decoded).subspan(first, n));
      kernels::AddFromSigns(bits, entries, std::span(added).subspan(first, n));
    }
    DeviceArray<float> entries(table, stream_);
    DeviceArray<float> device_values(values, stream_), device_taken(values, stream_);
    DeviceArray<float> device_decoded(count, stream_);
    DeviceArray<std::byte> put(want.size(), stream_, seed % 2), take(want.size(), stream_);
    Expect(PutSigns(device_values.span(), put.data(), stream_));
    Expect(TakeSigns(entries.span(), group, device_taken.span(), take.data(), stream_));
    ASSERT_EQ(put.Read(), want);
    ASSERT_EQ(take.Read(), want);
    ExpectSameBits(device_taken.Read(), taken);
    Expect(FromSigns(put.data(), entries.span(), group, device_decoded.span(), stream_));
    Expect(AddFromSigns(put.data(), entries.span(), group, device_values.span(), stream_));
    ExpectSameBits(device_decoded.Read(), decoded);
    ExpectSameBits(device_values.Read(), added);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
