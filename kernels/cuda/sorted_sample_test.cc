#include "kernels/cuda/sorted_sample.h"

#include <algorithm>

#include "kernels/cuda/twin_test.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

class SortedSampleTest : public TwinTest {
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

TEST_F(SortedSampleTest, AWholeArrayIsItsOwnSample) {
  for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal}) {
    for (const size_t count : {1, 2, 255, 256, 257, 1023, 1024, 1025, 4096}) {
      ExpectSorted(ValuesOf(kind, count, 3), count);
    }
  }
}

TEST_F(SortedSampleTest, OfEachPartOneIsDrawn) {
  ExpectSorted(ValuesOf(Kind::kRandom, 100'003, 5), 4096);
  ExpectSorted(ValuesOf(Kind::kRandom, 4097, 5), 4096);
  ExpectSorted(ValuesOf(Kind::kRandom, 10'000, 5), 1);
}

}  // namespace
}  // namespace thinwire::kernels::cuda
