#include "common/codec/sparse/index_code.h"

#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr IndexCoder kCoders[] = {IndexCoder::kEliasFano, IndexCoder::kGolombRice};

std::vector<std::byte> Encoded(IndexCoder coder, const std::vector<uint32_t>& indices,
                               size_t universe) {
  const size_t most = MaxIndexBytes(coder, indices.size(), universe);
  std::vector<std::byte> code(most + 1, std::byte{0xAB});
  const size_t bytes = EncodeIndices(coder, indices, universe, code.data());
  EXPECT_LE(bytes, most);
  EXPECT_EQ(code[most], std::byte{0xAB});
  code.resize(bytes);
  return code;
}

void ExpectRoundTrip(const std::vector<uint32_t>& indices, size_t universe) {
  for (const IndexCoder coder : kCoders) {
    const std::vector<std::byte> code = Encoded(coder, indices, universe);
    ASSERT_TRUE(CheckIndices(coder, code, indices.size(), universe).ok())
        << CheckIndices(coder, code, indices.size(), universe);
    std::vector<uint32_t> got(indices.size());
    IndexReader reader(coder, code, indices.size(), universe);
    const size_t half = got.size() / 2;
    ASSERT_EQ(reader.Next(std::span(got).first(half)), half);
    ASSERT_EQ(reader.Next(std::span(got).subspan(half)), got.size() - half);
    ASSERT_EQ(got, indices);
    ASSERT_FALSE(reader.MoreBits());
  }
}

std::vector<uint32_t> Draw(size_t count, size_t universe, std::mt19937& random) {
  std::set<uint32_t> drawn;
  while (drawn.size() < count) drawn.insert(static_cast<uint32_t>(random() % universe));
  return {drawn.begin(), drawn.end()};
}

TEST(IndexCodeTest, EveryCountOfEveryUniverseRoundTrips) {
  std::mt19937 random(9);
  for (size_t universe = 0; universe < 80; ++universe) {
    for (size_t count = 0; count <= universe; ++count) {
      ExpectRoundTrip(Draw(count, universe, random), universe);
    }
  }
}

TEST(IndexCodeTest, TheFirstAndLastIndicesOfALargeUniverseRoundTrip) {
  const uint32_t last = UINT32_MAX - 1;
  ExpectRoundTrip({0}, UINT32_MAX);
  ExpectRoundTrip({last}, UINT32_MAX);
  ExpectRoundTrip({0, 1, last - 1, last}, UINT32_MAX);
  std::vector<uint32_t> all(5000);
  std::iota(all.begin(), all.end(), 0u);
  ExpectRoundTrip(all, 5000);
}

TEST(IndexCodeTest, AThousandthTakesTwelveBitsAnIndexOrLess) {
  std::mt19937 random(10);
  const std::vector<uint32_t> indices = Draw(1000, 1'000'000, random);
  const auto bits = [&](IndexCoder coder) {
    return 8.0 * static_cast<double>(Encoded(coder, indices, 1'000'000).size()) / 1000;
  };
  EXPECT_NEAR(bits(IndexCoder::kEliasFano), 11.95, 0.02);
  EXPECT_NEAR(bits(IndexCoder::kGolombRice), 11.49, 0.05);
}

// The example has the indices 2, 3 and 21 below 24, so l = 2 and the gaps are 2, 0 and 17. The low
// bits of the gaps are 10, 00 and 01. Their upper bits are 0, 0 and 4, in unary 1, 1 and 00001.
TEST(IndexCodeTest, AGolombRiceCodeIsAsDocumented) {
  EXPECT_EQ(Encoded(IndexCoder::kGolombRice, {2, 3, 21}, 24),
            (std::vector<std::byte>{std::byte{0b01'00'10}, std::byte{0b1000011}}));
}

// The code of 10 indices below 1000 has l = 6. Its low part has 60 bits and 4 bits of padding, and
// its upper part has 10 + 15 + 1 bits.
class DamagedCodeTest : public testing::Test {
 protected:
  const std::vector<uint32_t> indices_ = {3, 70, 71, 300, 301, 302, 500, 700, 998, 999};
  std::vector<std::byte> code_ = Encoded(IndexCoder::kEliasFano, indices_, 1000);

  std::string Error() const {
    return std::string(CheckIndices(IndexCoder::kEliasFano, code_, 10, 1000).message());
  }
  void Flip(size_t bit) { code_[bit / 8] ^= std::byte{1} << (bit % 8); }
};

TEST_F(DamagedCodeTest, AnotherLengthIsRefused) {
  code_.pop_back();
  EXPECT_EQ(Error(), "10 indices below 1000: wrong length (expected 12 bytes, got 11)");
}

TEST_F(DamagedCodeTest, SetPaddingBitsAreRefused) {
  Flip(62);
  EXPECT_EQ(Error(), "indices: nonzero padding after the low bits");
}

TEST_F(DamagedCodeTest, AFlippedBitOfTheUpperPartIsRefused) {
  for (size_t bit = 64; bit < 8 * code_.size(); ++bit) {
    Flip(bit);
    EXPECT_NE(Error(), "") << bit;
    Flip(bit);
  }
  EXPECT_EQ(Error(), "");
}

TEST_F(DamagedCodeTest, AnIndexBeyondTheUniverseIsRefused) {
  code_[7] = std::byte{0x0A};  // changes the low bits of the last index, 999, from 39 to 43
  EXPECT_EQ(Error(), "index 9: too large (expected below 1000, got 1003)");
}

TEST_F(DamagedCodeTest, IndicesThatDoNotAscendAreRefused) {
  Flip(12);  // changes the third index from 71 to 70, which equals the second index
  EXPECT_EQ(Error(), "index 2: not ascending (expected above 70, got 70)");
}

TEST(IndexCodeTest, AGolombRiceCodeEndsWithItsLastBit) {
  std::vector<std::byte> code = Encoded(IndexCoder::kGolombRice, {1, 2, 40}, 100);
  code.push_back(std::byte{0});
  EXPECT_EQ(CheckIndices(IndexCoder::kGolombRice, code, 3, 100).message(),
            "indices: bytes after the last bit");
  code.resize(2);
  EXPECT_EQ(CheckIndices(IndexCoder::kGolombRice, code, 3, 100).message(),
            "3 indices below 100: wrong length (expected 3 to 4 bytes, got 2)");
}

// For arbitrary bytes, CheckIndices terminates. If it accepts a code, the decoded indices are
// ascending and encode to the same bytes.
TEST(IndexCodeTest, EveryCodeThatPassesTheCheckEncodesToItself) {
  std::mt19937 random(11);
  for (const IndexCoder coder : kCoders) {
    size_t passed_count = 0;
    for (int round = 0; round < 200'000; ++round) {
      const size_t universe = 1 + random() % 40;
      const size_t count = random() % (universe + 1);
      const size_t most = MaxIndexBytes(coder, count, universe);
      const bool shorter = coder == IndexCoder::kGolombRice && most > 1 && random() % 2 == 0;
      std::vector<std::byte> code(shorter ? most - 1 : most);
      for (std::byte& byte : code) byte = static_cast<std::byte>(random() & random());
      if (!CheckIndices(coder, code, count, universe).ok()) continue;
      ++passed_count;
      std::vector<uint32_t> indices(count);
      IndexReader(coder, code, count, universe).Next(indices);
      ASSERT_EQ(Encoded(coder, indices, universe), code);
    }
    EXPECT_GT(passed_count, 1000u);
  }
}

}  // namespace
}  // namespace thinwire
