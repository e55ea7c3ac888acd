#include "kernels/cuda/sums.h"

#include <algorithm>

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

class SumsTwinTest : public TwinTest {
 protected:
  // Of any NaN the same.
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

TEST_F(SumsTwinTest, OneGroupsAreTheCpusToTheBit) {
  ForEachCase([&](const std::vector<float>& values, uint32_t) {
    ExpectTheCpus(values, std::max<size_t>(1, values.size()));
  });
}

TEST_F(SumsTwinTest, EachGroupsAreTheCpusToTheBit) {
  const std::vector<float> values = ValuesOf(Kind::kRandom, 1'000, 4);
  for (const size_t group : {1, 15, 16, 17, 255, 256, 257, 784, 999, 1'000, 1'001}) {
    ExpectTheCpus(values, group);
  }
}

TEST_F(SumsTwinTest, GroupsOfManyRunsAreTheCpusToTheBit) {
  const std::vector<float> values = ValuesOf(Kind::kRandom, 200'000, 5);
  for (const size_t group : {4'096, 4'097, 8'192, 65'536, 70'000, 199'999, 200'000}) {
    ExpectTheCpus(values, group);
  }
}

TEST_F(SumsTwinTest, ZerosOfEitherSignAreCounted) {
  std::vector<float> zeros(700, 0.0f);
  for (size_t i = 0; i < zeros.size(); i += 3) zeros[i] = -0.0f;
  ExpectTheCpus(zeros, 700);
  ExpectTheCpus(zeros, 100);
}

}  // namespace
}  // namespace thinwire::kernels::cuda
