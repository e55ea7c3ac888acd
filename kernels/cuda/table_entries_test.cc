#include "kernels/cuda/table_entries.h"

#include <algorithm>

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

class TableEntriesTest : public TwinTest {
 protected:
  // Each entry to the mean of the samples that are nearer to it than to any other.
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

TEST_F(TableEntriesTest, APercentileIsBetweenTheNearestTwoInProportion) {
  DeviceArray<float> sample({0.0f, 10.0f, 20.0f, 30.0f, 40.0f}, stream_), entries(2, stream_);
  Expect(Percentiles(sample.span(), entries.span(), stream_));
  const std::vector<float> got = entries.Read();
  EXPECT_FLOAT_EQ(got[0], 19.8f);
  EXPECT_FLOAT_EQ(got[1], 39.6f);
  DeviceArray<float> one(std::vector<float>{7.0f}, stream_), all(kMostEntries, stream_);
  Expect(Percentiles(one.span(), all.span(), stream_));
  EXPECT_EQ(all.Read(), std::vector<float>(kMostEntries, 7.0f));
}

TEST_F(TableEntriesTest, RefinedEntriesAreTheMeansOfWhatIsNearest) {
  for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal}) {
    for (const size_t count : {1, 2, 100, 4096}) {
      for (const size_t entry_count : {size_t{1}, size_t{2}, size_t{8}, kMostEntries}) {
        const std::vector<float> sample = SortedMagnitudes(kind, count);
        DeviceArray<float> device_sample(sample, stream_), entries(entry_count, stream_);
        Expect(Percentiles(device_sample.span(), entries.span(), stream_));
        std::vector<float> want = entries.Read();
        for (int time = 0; time < 8; ++time) Refine(sample, want);
        Expect(RefineEntries(device_sample.span(), 8, entries.span(), stream_));
        ExpectSameBits(entries.Read(), want);
      }
    }
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
