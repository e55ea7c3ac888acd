#include "kernels/cuda/signs.h"

#include "kernels/cuda/twin_test.h"
#include "kernels/signs.h"

namespace thinwire::kernels::cuda {
namespace {

using SignsTwinTest = TwinTest;

TEST_F(SignsTwinTest, AllFourDoWhatTheCpuDoes) {
  const std::vector<float> table = {0.7f, -1.3f};
  const auto entries = std::span(table).first<2>();
  DeviceArray<float> device_table(table, stream_);
  const auto device_entries = device_table.span().first<2>();
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    std::vector<std::byte> want((values.size() + 7) / 8);
    std::vector<float> taken = values, decoded(values.size()), added = values;
    kernels::TakeSigns(entries, taken, want.data());
    kernels::FromSigns(want.data(), entries, decoded);
    kernels::AddFromSigns(want.data(), entries, added);

    DeviceArray<float> device_values(values, stream_), device_taken(values, stream_);
    DeviceArray<float> device_decoded(values.size(), stream_);
    DeviceArray<std::byte> put(want.size(), stream_, seed % 2), take(want.size(), stream_);
    Expect(PutSigns(device_values.span(), put.data(), stream_));
    Expect(TakeSigns(device_entries, device_taken.span(), take.data(), stream_));
    ASSERT_EQ(put.Read(), want);
    ASSERT_EQ(take.Read(), want);
    ExpectSameBits(device_taken.Read(), taken);
    Expect(FromSigns(put.data(), device_entries, device_decoded.span(), stream_));
    Expect(AddFromSigns(put.data(), device_entries, device_values.span(), stream_));
    ExpectSameBits(device_decoded.Read(), decoded);
    ExpectSameBits(device_values.Read(), added);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
