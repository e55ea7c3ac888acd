#include "kernels/cuda/ops/index_code.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr uint32_t kBefore = 17;

class GolombRiceTest : public CudaTest {
 protected:
  // Encodes bit by bit, as index_code.h defines the code.
  static std::vector<std::byte> ByDefinition(const std::vector<uint32_t>& indices,
                                             size_t universe) {
    if (indices.empty()) return {};
    size_t low_bits = 0;
    while ((size_t{1} << low_bits) < universe * 481 / (indices.size() * 1000)) ++low_bits;
    const size_t low_bytes = (indices.size() * low_bits + 7) / 8;
    std::vector<std::byte> code(low_bytes);
    const auto set = [&](size_t bit) {
      if (bit / 8 >= code.size()) code.resize(bit / 8 + 1);
      code[bit / 8] |= std::byte{1} << (bit % 8);
    };
    size_t sum = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      const uint32_t gap = i == 0 ? indices[0] : indices[i] - indices[i - 1] - 1;
      for (size_t b = 0; b < low_bits; ++b) {
        if ((gap >> b & 1) != 0) set(i * low_bits + b);
      }
      sum += gap >> low_bits;
      set(low_bytes * 8 + sum + i);
    }
    return code;
  }

  void ExpectDefined(const std::vector<uint32_t>& indices, size_t universe) {
    const std::vector<std::byte> want = ByDefinition(indices, universe);
    DeviceArray<uint32_t> device_indices(indices, stream_);
    DeviceArray<uint32_t> words(GolombRiceWords(indices.size()), stream_), size(1, stream_);
    DeviceArray<std::byte> code(want.size(), stream_, 1);
    Expect(EncodeGolombRice(device_indices.span(), universe, words.span(),
                            {code.data(), size.data(), kBefore}, stream_));
    ASSERT_EQ(size.Read()[0], kBefore + want.size());
    ASSERT_EQ(code.Read(), want) << indices.size() << " of " << universe;
  }
};

TEST_F(GolombRiceTest, WritesTheBytesOfTheDefinition) {
  std::mt19937 random(1);
  for (const size_t universe : {1, 2, 100, 4096, 4097, 1 << 16}) {
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

TEST_F(GolombRiceTest, ScansMoreTilesThanABlockHasThreads) {
  std::vector<uint32_t> indices(2'200'000);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint32_t>(7 * i + i % 5);
  ExpectDefined(indices, 7 * indices.size());
}

TEST_F(GolombRiceTest, EncodesIndicesCrowdedAtEitherEnd) {
  std::vector<uint32_t> first(1000), last(1000);
  std::iota(first.begin(), first.end(), 0u);
  std::iota(last.begin(), last.end(), 0xFFFFFFFFu - 1000);
  ExpectDefined(first, 0xFFFFFFFF);
  ExpectDefined(last, 0xFFFFFFFF);
  ExpectDefined({0xFFFFFFFE}, 0xFFFFFFFF);
}

class EliasFanoTest : public CudaTest {
 protected:
  static void Set(std::vector<std::byte>& bytes, size_t bit) {
    bytes[bit / 8] |= std::byte{1} << (bit % 8);
  }

  // Encodes bit by bit, as index_code.h defines the code.
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

TEST_F(EliasFanoTest, WritesTheBytesOfTheDefinition) {
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

TEST_F(EliasFanoTest, EncodesIndicesCrowdedAtEitherEnd) {
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
