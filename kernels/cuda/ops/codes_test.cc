#include "kernels/cuda/ops/codes.h"

#include <algorithm>

#include "kernels/codes.h"
#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

using CodesTwinTest = CudaTest;

std::vector<uint8_t> RandomCodes(size_t count, size_t below, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> codes(count);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % below);
  return codes;
}

TEST_F(CodesTwinTest, CodesOfMagnitudesEqualTheCpus) {
  for (int bits = 1; bits <= 8; ++bits) {
    std::vector<float> thresholds = ValuesOf(Kind::kRandom, (size_t{1} << (bits - 1)) - 1, 7);
    for (float& threshold : thresholds) threshold = std::abs(threshold);
    std::ranges::sort(thresholds);
    DeviceArray<float> device_thresholds(thresholds, stream_);
    ForEachCase([&](std::vector<float> values, uint32_t) {
      if (values.size() > 5000 && bits != 4) return;
      std::ranges::copy(std::span(thresholds).first(std::min(thresholds.size(), values.size())),
                        values.begin());  // some values equal thresholds
      std::vector<uint8_t> want(values.size());
      kernels::CodesOfMagnitudes(values, thresholds, bits, want);
      DeviceArray<float> device_values(values, stream_);
      DeviceArray<uint8_t> got(values.size(), stream_);
      Expect(CodesOfMagnitudes(device_values.span(), device_thresholds.span(), bits, got.span(),
                               stream_));
      ASSERT_EQ(got.Read(), want) << bits << " bits";
    });
  }
}

TEST_F(CodesTwinTest, CodesOfStepsEqualTheCpus) {
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    const float step = 0.37f * static_cast<float>(seed), zero = static_cast<float>(seed % 256);
    std::vector<uint8_t> want(values.size());
    kernels::CodesOfSteps(values, step, zero, want);
    DeviceArray<float> device_values(values, stream_);
    DeviceArray<float> step_and_zero({step, zero}, stream_);
    DeviceArray<uint8_t> got(values.size(), stream_, seed % 2);
    Expect(
        CodesOfSteps(device_values.span(), step_and_zero.span().first<2>(), got.span(), stream_));
    ASSERT_EQ(got.Read(), want);
  });
}

TEST_F(CodesTwinTest, AZeroStepGivesTheCodeOfZero) {
  DeviceArray<float> values({1.0f, -2.0f, 0.0f}, stream_), step_and_zero({0.0f, 7.0f}, stream_);
  DeviceArray<uint8_t> got(3, stream_);
  Expect(CodesOfSteps(values.span(), step_and_zero.span().first<2>(), got.span(), stream_));
  EXPECT_EQ(got.Read(), std::vector<uint8_t>(3, 7));
}

TEST_F(CodesTwinTest, LookUpsEqualTheCpus) {
  for (const size_t size : {1, 2, 16, 100, 256}) {
    const std::vector<float> table = ValuesOf(Kind::kSpecial, size, 3);
    DeviceArray<float> device_table(table, stream_);
    for (const size_t count : {0, 1, 4095, 4096, 4097, 9000}) {
      const std::vector<uint8_t> codes = RandomCodes(count, size, 5);
      std::vector<float> want = ValuesOf(Kind::kRandom, count, 9), subtracted = want;
      DeviceArray<uint8_t> device_codes(codes, stream_);
      DeviceArray<float> out(count, stream_), sum(want, stream_, count % 2);
      DeviceArray<float> difference(want, stream_, count % 2);
      Expect(LookUpAdd(device_codes.span(), device_table.span(), sum.span(), stream_));
      kernels::LookUpAdd(codes, table, want);
      ExpectSameBits(sum.Read(), want);
      Expect(LookUp(device_codes.span(), device_table.span(), out.span(), stream_));
      kernels::LookUp(codes, table, want);
      ExpectSameBits(out.Read(), want);
      Expect(LookUpSubtract(device_codes.span(), device_table.span(), difference.span(), stream_));
      for (size_t i = 0; i < count; ++i) subtracted[i] -= want[i];
      ExpectSameBits(difference.Read(), subtracted);
    }
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
