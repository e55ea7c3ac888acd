#include "kernels/cuda/draws.h"

#include "kernels/cuda/twin_test.h"
#include "kernels/mix_bits.h"

namespace thinwire::kernels::cuda {
namespace {

using DrawsTest = TwinTest;

TEST_F(DrawsTest, EachPartHasOneOfTheIndices) {
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
