#include "kernels/cuda/sum_of_squares.h"

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

class SumOfSquaresTest : public TwinTest {
 protected:
  double OnDevice(const std::vector<float>& values, size_t offset) {
    DeviceArray<float> device_values(values, stream_, offset);
    DeviceArray<double> partial(PartialSumsOfSquares(values.size()), stream_);
    DeviceArray<double> sum(1, stream_);
    Expect(SumOfSquares(device_values.span(), partial.span(), sum.data(), stream_));
    return sum.Read()[0];
  }
};

TEST_F(SumOfSquaresTest, DiffersFromAPlainLoopByRoundingAlone) {
  for (const size_t offset : {0, 1}) {
    ForEachCase([&](const std::vector<float>& values, uint32_t) {
      long double want = 0;
      for (const float v : values) want += static_cast<long double>(v) * v;
      const double got = OnDevice(values, offset);
      if (std::isfinite(want)) {
        ASSERT_NEAR(got, static_cast<double>(want), 1e-13 * static_cast<double>(want));
      } else {
        ASSERT_FALSE(std::isfinite(got));
      }
    });
  }
}

TEST_F(SumOfSquaresTest, WholeNumbersAreAddedUpExactly) {
  for (const size_t count : {4096, 5000, 4096 * 300 + 7}) {
    EXPECT_EQ(OnDevice(std::vector<float>(count, 3.0f), 0), 9.0 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
