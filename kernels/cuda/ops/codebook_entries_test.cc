#include "kernels/cuda/ops/codebook_entries.h"

#include <algorithm>

#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

class SampledEntriesTest : public CudaTest {
 protected:
  // Runs one iteration of Lloyd's algorithm on the CPU.
  static void Refine(const std::vector<float>& sample, std::vector<float>& entries) {
    const std::vector<float> before = entries;
    size_t i = 0;
    for (size_t e = 0; e < entries.size(); ++e) {
      const bool last = e + 1 == entries.size();
      const float middle = last ? 0.0f : 0.5f * before[e] + 0.5f * before[e + 1];
      double sum = 0;
      size_t count = 0;
      for (; i < sample.size() && (last || sample[i] < middle); ++i, ++count) sum += sample[i];
      if (count > 0) entries[e] = static_cast<float>(sum / static_cast<double>(count));
    }
  }

  static std::vector<float> SortedMagnitudes(Kind kind, size_t count) {
    std::vector<float> sample = ValuesOf(kind, count, 11);
    for (float& value : sample) value = std::abs(value);
    std::ranges::sort(sample);
    return sample;
  }
};

TEST_F(SampledEntriesTest, PercentilesInterpolateLinearly) {
  DeviceArray<float> sample({0.0f, 10.0f, 20.0f, 30.0f, 40.0f}, stream_), entries(2, stream_);
  Expect(Percentiles(sample.span(), entries.span(), stream_));
  const std::vector<float> got = entries.Read();
  EXPECT_FLOAT_EQ(got[0], 19.8f);
  EXPECT_FLOAT_EQ(got[1], 39.6f);
  DeviceArray<float> one(std::vector<float>{7.0f}, stream_), all(kMaxEntries, stream_);
  Expect(Percentiles(one.span(), all.span(), stream_));
  EXPECT_EQ(all.Read(), std::vector<float>(kMaxEntries, 7.0f));
}

TEST_F(SampledEntriesTest, RefinedEntriesAreTheMeansOfTheNearestSamples) {
  for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal}) {
    for (const size_t count : {1, 2, 100, 4096}) {
      for (const size_t entry_count : {size_t{1}, size_t{2}, size_t{8}, kMaxEntries}) {
        const std::vector<float> sample = SortedMagnitudes(kind, count);
        DeviceArray<float> device_sample(sample, stream_), entries(entry_count, stream_);
        Expect(Percentiles(device_sample.span(), entries.span(), stream_));
        std::vector<float> want = entries.Read();
        for (int iteration = 0; iteration < 8; ++iteration) Refine(sample, want);
        Expect(RefineEntries(device_sample.span(), 8, entries.span(), stream_));
        ExpectSameBits(entries.Read(), want);
      }
    }
  }
}

class LogEntriesTest : public CudaTest {
 protected:
  std::vector<float> Fit(const std::vector<float>& values) {
    DeviceArray<float> device_values(values, stream_), entries(8, stream_);
    DeviceArray<uint32_t> words(2, stream_);
    DeviceArray<std::byte> head(3, stream_, 1);
    Expect(FitLogEntries(device_values.span(), words.span().first<2>(), head.data(),
                         entries.span().first<8>(), stream_));
    ratio_ = 1 - std::to_integer<int>(head.Read()[2]) / 256.0f;
    return entries.Read();
  }

  float ratio_ = 0;
};

TEST_F(LogEntriesTest, AreAGeometricSeriesFromTheLargestToTheSmallest) {
  std::vector<float> values(5000, 0.0f);
  values[77] = -8.0f;
  values[4999] = 2.0f;  // the smallest nonzero magnitude; zeros are ignored
  const std::vector<float> entries = Fit(values);
  for (size_t c = 0; c + 1 < entries.size(); ++c) {
    EXPECT_FLOAT_EQ(entries[c] / entries[c + 1], ratio_);
  }
  EXPECT_LE(8.0f * std::pow(ratio_, 8.0f), 2.0f);
  EXPECT_GT(8.0f * std::pow(ratio_ + 1.0f / 256, 8.0f), 2.0f);
  EXPECT_NEAR(entries[7], 8.0f * std::sqrt(ratio_), 8.0f / 256);
}

TEST_F(LogEntriesTest, StopAtOne256thOfTheLargest) {
  const std::vector<float> entries = Fit({1.0f, 1e-20f});
  EXPECT_GT(entries[0], 1.0f / 256);
  EXPECT_LT(entries[0], 1.5f / 256);
}

TEST_F(LogEntriesTest, AreNearlyEqualForEqualValues) {
  for (const float entry : Fit(std::vector<float>(100, -3.0f))) EXPECT_FLOAT_EQ(entry, 3.0f);
  EXPECT_EQ(Fit({0.0f, -0.0f}), Fit({0.0f}));
}

using SignedTableTest = CudaTest;

TEST_F(SignedTableTest, HasBothSignsAndThresholdsBetweenTheMagnitudes) {
  DeviceArray<float> magnitudes({0.0f, 1.0f, 3.0f, 3.0e38f}, stream_);
  DeviceArray<float> table(8, stream_), thresholds(3, stream_);
  DeviceArray<std::byte> numbers(16, stream_, 1);
  Expect(
      MakeSignedTable(magnitudes.span(), numbers.data(), table.span(), thresholds.span(), stream_));
  ExpectSameBits(table.Read(), {0.0f, 1.0f, 3.0f, 3.0e38f, -0.0f, -1.0f, -3.0f, -3.0e38f});
  EXPECT_EQ(thresholds.Read(), (std::vector<float>{0.5f, 2.0f, 0.5f * 3.0f + 0.5f * 3.0e38f}));
  const std::vector<float> want = magnitudes.Read();
  const std::vector<std::byte> got = numbers.Read();
  EXPECT_TRUE(std::ranges::equal(got, std::as_bytes(std::span(want))));
}

TEST_F(SignedTableTest, OneMagnitudeHasNoThreshold) {
  DeviceArray<float> magnitudes(std::vector<float>{2.0f}, stream_), table(2, stream_),
      thresholds(0, stream_);
  Expect(MakeSignedTable(magnitudes.span(), nullptr, table.span(), thresholds.span(), stream_));
  EXPECT_EQ(table.Read(), (std::vector<float>{2.0f, -2.0f}));
  thresholds.Read();
}

}  // namespace
}  // namespace thinwire::kernels::cuda
