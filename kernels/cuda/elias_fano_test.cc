#include "kernels/cuda/elias_fano.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/twin_test.h"

namespace thinwire::kernels::cuda {
namespace {

class EliasFanoTest : public TwinTest {
 protected:
  static void Set(std::vector<std::byte>& bytes, size_t bit) {
    bytes[bit / 8] |= std::byte{1} << (bit % 8);
  }

  // By the definition, a bit at a time.
  static std::vector<std::byte> ByDefinition(const std::vector<uint32_t>& indices,
                                             size_t universe) {
    size_t low_bits = 0;
    while (!indices.empty() && (indices.size() << (low_bits + 1)) <= universe) ++low_bits;
    const size_t low_bytes = (indices.size() * low_bits + 7) / 8;
    const size_t upper_bits =
        indices.empty() ? 0 : indices.size() + ((universe - 1) >> low_bits) + 1;
    std::vector<std::byte> code(low_bytes + (upper_bits + 7) / 8);
    for (size_t i = 0; i < indices.size(); ++i) {
      for (size_t b = 0; b < low_bits; ++b) {
        if ((indices[i] >> b & 1) != 0) Set(code, i * low_bits + b);
      }
      Set(code, low_bytes * 8 + (indices[i] >> low_bits) + i);
    }
    return code;
  }

  void ExpectDefined(const std::vector<uint32_t>& indices, size_t universe) {
    const std::vector<std::byte> want = ByDefinition(indices, universe);
    ASSERT_EQ(ShapeOfEliasFano(indices.size(), universe).bytes(), want.size());
    DeviceArray<uint32_t> device_indices(indices, stream_);
    DeviceArray<std::byte> code(want.size(), stream_, 1);
    Expect(EncodeEliasFano(device_indices.span(), universe, code.data(), stream_));
    ASSERT_EQ(code.Read(), want) << indices.size() << " of " << universe;
  }
};

TEST_F(EliasFanoTest, TheBytesAreThoseOfTheDefinition) {
  std::mt19937 random(1);
  for (const size_t universe : {1, 2, 100, 4096, 4097, 1 << 20}) {
    for (const size_t part : {1, 2, 3, 10, 100, 1000}) {
      std::vector<uint32_t> all(universe);
      std::iota(all.begin(), all.end(), 0u);
      std::vector<uint32_t> indices;
      std::ranges::sample(all, std::back_inserter(indices), static_cast<ptrdiff_t>(universe / part),
                          random);
      ExpectDefined(indices, universe);
    }
  }
}

TEST_F(EliasFanoTest, IndicesMayCrowdAtEitherEnd) {
  std::vector<uint32_t> first(1000), last(1000);
  std::iota(first.begin(), first.end(), 0u);
  std::iota(last.begin(), last.end(), 0xFFFFFFFFu - 1000);
  ExpectDefined(first, 0xFFFFFFFF);
  ExpectDefined(last, 0xFFFFFFFF);
  ExpectDefined({}, 77);
  ExpectDefined({0xFFFFFFFE}, 0xFFFFFFFF);
}

}  // namespace
}  // namespace thinwire::kernels::cuda
