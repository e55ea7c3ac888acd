#include "kernels/cuda/ops/stratified_sample.h"

#include <algorithm>

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

class SortedSampleTest : public CudaTest {
 protected:
  void ExpectSorted(const std::vector<float>& values, size_t count) {
    std::vector<float> want(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t begin = i * values.size() / count, end = (i + 1) * values.size() / count;
      want[i] = std::abs(values[begin + MixBits(i) % (end - begin)]);
    }
    std::ranges::sort(want);
    DeviceArray<float> device_values(values, stream_), sample(count, stream_);
    DeviceArray<uint32_t> words(2 * count, stream_);
    Expect(SortedSample(device_values.span(), sample.span(), words.span(), stream_));
    ExpectSameBits(sample.Read(), want);
  }
};

TEST_F(SortedSampleTest, SortsTheWholeArrayIfTheSampleIsAsLarge) {
  for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal}) {
    for (const size_t count : {1, 2, 255, 256, 257, 1023, 1024, 1025, 4096}) {
      ExpectSorted(ValuesOf(kind, count, 3), count);
    }
  }
}

TEST_F(SortedSampleTest, DrawsOneMagnitudeFromEachPart) {
  ExpectSorted(ValuesOf(Kind::kRandom, 100'003, 5), 4096);
  ExpectSorted(ValuesOf(Kind::kRandom, 4097, 5), 4096);
  ExpectSorted(ValuesOf(Kind::kRandom, 10'000, 5), 1);
}

using DrawsTest = CudaTest;

TEST_F(DrawsTest, DrawsOneIndexFromEachPart) {
  for (const size_t universe : {1, 10, 4097, 1 << 20}) {
    for (const size_t count : {size_t{1}, universe / 3, universe}) {
      DeviceArray<uint32_t> indices(count, stream_);
      Expect(DrawIndices(5, universe, indices.span(), stream_));
      const std::vector<uint32_t> got = indices.Read();
      for (size_t i = 0; i < count; ++i) {
        const size_t begin = i * universe / count, end = (i + 1) * universe / count;
        ASSERT_EQ(got[i], begin + MixBits(5 + i) % (end - begin));
      }
    }
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda
