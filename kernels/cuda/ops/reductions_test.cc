#include "kernels/cuda/ops/reductions.h"

#include <algorithm>

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/reductions.h"

namespace thinwire::kernels::cuda {
namespace {

class SignSumsTwinTest : public CudaTest {
 protected:
  // Returns the bits of SUM. Returns the same number for every NaN.
  static uint64_t BitsOf(double sum) {
    return std::isnan(sum) ? ~0u : std::bit_cast<uint64_t>(sum);
  }

  void ExpectTheCpus(const std::vector<float>& values, size_t group) {
    const size_t groups = (values.size() + group - 1) / group;
    DeviceArray<float> device_values(values, stream_);
    DeviceArray<SignSums> device_runs(groups * SumRuns(group), stream_);
    DeviceArray<SignSums> device_sums(groups, stream_);
    DeviceArray<Range> device_ranges(groups, stream_);
    Expect(SumBySign(device_values.span(), group, device_runs.span(), device_sums.span(), stream_));
    Expect(RangeWithZero(device_values.span(), group, device_ranges.span(), stream_));
    const std::vector<SignSums> sums = device_sums.Read();
    const std::vector<Range> ranges = device_ranges.Read();
    for (size_t g = 0; g < groups; ++g) {
      const auto of_group =
          std::span(values).subspan(g * group).first(std::min(group, values.size() - g * group));
      const SignSums want = kernels::SumBySign(of_group);
      const Range range = kernels::RangeWithZero(of_group);
      ASSERT_EQ(BitsOf(sums[g].positive), BitsOf(want.positive));
      ASSERT_EQ(BitsOf(sums[g].negative), BitsOf(want.negative));
      ASSERT_EQ(sums[g].negative_count, want.negative_count);
      ExpectSameBits({ranges[g].least, ranges[g].most}, {range.least, range.most});
    }
  }
};

TEST_F(SignSumsTwinTest, OneGroupHasTheCpusBits) {
  ForEachCase([&](const std::vector<float>& values, uint32_t) {
    ExpectTheCpus(values, std::max<size_t>(1, values.size()));
  });
}

TEST_F(SignSumsTwinTest, EachGroupHasTheCpusBits) {
  const std::vector<float> values = ValuesOf(Kind::kRandom, 1'000, 4);
  for (const size_t group : {1, 15, 16, 17, 255, 256, 257, 784, 999, 1'000, 1'001}) {
    ExpectTheCpus(values, group);
  }
}

TEST_F(SignSumsTwinTest, GroupsOfManyRunsHaveTheCpusBits) {
  const std::vector<float> values = ValuesOf(Kind::kRandom, 200'000, 5);
  for (const size_t group : {4'096, 4'097, 8'192, 65'536, 70'000, 199'999, 200'000}) {
    ExpectTheCpus(values, group);
  }
}

TEST_F(SignSumsTwinTest, CountsZerosBySign) {
  std::vector<float> zeros(700, 0.0f);
  for (size_t i = 0; i < zeros.size(); i += 3) zeros[i] = -0.0f;
  ExpectTheCpus(zeros, 700);
  ExpectTheCpus(zeros, 100);
}

using MagnitudeTwinTest = CudaTest;

TEST_F(MagnitudeTwinTest, LargestMagnitudeEqualsTheCpus) {
  ForEachCase([&](const std::vector<float>& values, uint32_t) {
    DeviceArray<float> device_values(values, stream_), largest(1, stream_);
    Expect(LargestMagnitude(device_values.span(), largest.data(), stream_));
    ExpectSameBits(largest.Read(), {kernels::LargestMagnitude(values)});
  });
}

TEST_F(MagnitudeTwinTest, LargestMagnitudeOfSumEqualsTheCpus) {
  for (const size_t offset : {0, 1}) {
    ForEachCase([&](const std::vector<float>& a, uint32_t seed) {
      const std::vector<float> b = ValuesOf(Kind::kRandom, a.size(), seed + 1000);
      DeviceArray<float> device_a(a, stream_), device_b(b, stream_, offset), largest(1, stream_);
      Expect(LargestMagnitudeOfSum(device_a.span(), device_b.span(), largest.data(), stream_));
      ExpectSameBits(largest.Read(), {kernels::LargestMagnitudeOfSum(a, b)});
    });
  }
}

class SumOfSquaresTest : public CudaTest {
 protected:
  double OnDevice(const std::vector<float>& values, size_t offset) {
    DeviceArray<float> device_values(values, stream_, offset);
    DeviceArray<double> partial(PartialSumsOfSquares(values.size()), stream_);
    DeviceArray<double> sum(1, stream_);
    Expect(SumOfSquares(device_values.span(), partial.span(), sum.data(), stream_));
    return sum.Read()[0];
  }
};

TEST_F(SumOfSquaresTest, DiffersFromASimpleLoopByRoundingOnly) {
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

TEST_F(SumOfSquaresTest, AddsSquaresOfIntegersExactly) {
  for (const size_t count : {4096, 5000, 4096 * 300 + 7}) {
    EXPECT_EQ(OnDevice(std::vector<float>(count, 3.0f), 0), 9.0 * static_cast<double>(count));
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
