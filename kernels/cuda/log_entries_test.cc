#include "kernels/cuda/log_entries.h"

#include <algorithm>

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

class LogEntriesTest : public TwinTest {
 protected:
  std::vector<float> Fit(const std::vector<float>& values) {
    DeviceArray<float> device_values(values, stream_), entries(8, stream_);
    DeviceArray<uint32_t> words(2, stream_);
    DeviceArray<std::byte> head(3, stream_, 1);
    Expect(LogEntries(device_values.span(), words.span().first<2>(), head.data(),
                      entries.span().first<8>(), stream_));
    ratio_ = 1 - std::to_integer<int>(head.Read()[2]) / 256.0f;
    return entries.Read();
  }

  float ratio_ = 0;
};

TEST_F(LogEntriesTest, TheyReachFromTheLargestToTheSmallestInEvenRatios) {
  std::vector<float> values(5000, 0.0f);
  values[77] = -8.0f;
  values[4999] = 2.0f;  // a zero is nobody's smallest
  const std::vector<float> entries = Fit(values);
  for (size_t c = 0; c + 1 < entries.size(); ++c) {
    EXPECT_FLOAT_EQ(entries[c] / entries[c + 1], ratio_);
  }
  EXPECT_LE(8.0f * std::pow(ratio_, 8.0f), 2.0f);
  EXPECT_GT(8.0f * std::pow(ratio_ + 1.0f / 256, 8.0f), 2.0f);
  EXPECT_NEAR(entries[7], 8.0f * std::sqrt(ratio_), 8.0f / 256);
}

TEST_F(LogEntriesTest, TheyReachNoFurtherDownThanOnePartOf256) {
  const std::vector<float> entries = Fit({1.0f, 1e-20f});
  EXPECT_GT(entries[0], 1.0f / 256);
  EXPECT_LT(entries[0], 1.5f / 256);
}

TEST_F(LogEntriesTest, OfEqualValuesAllAreNearlyTheSame) {
  for (const float entry : Fit(std::vector<float>(100, -3.0f))) EXPECT_FLOAT_EQ(entry, 3.0f);
  EXPECT_EQ(Fit({0.0f, -0.0f}), Fit({0.0f}));
}

}  // namespace
}  // namespace thinwire::kernels::cuda
