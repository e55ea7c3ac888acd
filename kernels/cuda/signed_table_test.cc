#include "kernels/cuda/signed_table.h"

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

using SignedTableTest = TwinTest;

TEST_F(SignedTableTest, EntriesComeWithBothSignsAndThresholdsLieBetweenThem) {
  DeviceArray<float> magnitudes({0.0f, 1.0f, 3.0f, 3.0e38f}, stream_);
  DeviceArray<float> table(8, stream_), thresholds(3, stream_);
  DeviceArray<std::byte> numbers(16, stream_, 1);
  Expect(SignedTable(magnitudes.span(), numbers.data(), table.span(), thresholds.span(), stream_));
  ExpectSameBits(table.Read(), {0.0f, 1.0f, 3.0f, 3.0e38f, -0.0f, -1.0f, -3.0f, -3.0e38f});
  EXPECT_EQ(thresholds.Read(), (std::vector<float>{0.5f, 2.0f, 0.5f * 3.0f + 0.5f * 3.0e38f}));
  const std::vector<float> want = magnitudes.Read();
  const std::vector<std::byte> got = numbers.Read();
  EXPECT_TRUE(std::ranges::equal(got, std::as_bytes(std::span(want))));
}

TEST_F(SignedTableTest, OneMagnitudeHasNoThreshold) {
  DeviceArray<float> magnitudes(std::vector<float>{2.0f}, stream_), table(2, stream_),
      thresholds(0, stream_);
  Expect(SignedTable(magnitudes.span(), nullptr, table.span(), thresholds.span(), stream_));
  EXPECT_EQ(table.Read(), (std::vector<float>{2.0f, -2.0f}));
  thresholds.Read();
}

}  // namespace
}  // namespace thinwire::kernels::cuda
