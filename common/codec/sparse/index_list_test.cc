#include "common/codec/sparse/index_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <utility>

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using Indices = std::vector<uint32_t>;

std::vector<std::byte> BytesOf(const ByteChain& list) {
  std::vector<std::byte> bytes(list.size());
  list.CopyTo(bytes);
  return bytes;
}

std::string ErrorOf(std::vector<std::byte> bytes, size_t universe) {
  const auto decoded = DecodeIndexList(ByteChain(std::move(bytes)), universe);
  return decoded.ok() ? "" : std::string(decoded.status().message());
}

TEST(IndexListTest, ListsRoundTrip) {
  Indices all(1000);
  std::iota(all.begin(), all.end(), 0);
  for (const Indices& indices : {Indices{}, Indices{0}, Indices{999}, Indices{3, 4, 500}, all}) {
    const ByteChain list = EncodeIndexList(indices, 1000);
    EXPECT_FALSE(list.empty());
    const auto decoded = DecodeIndexList(list, 1000);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, indices);
  }
}

TEST(IndexListTest, AListOfAnotherLengthIsRefused) {
  std::vector<std::byte> bytes = BytesOf(EncodeIndexList(Indices{1, 2, 3}, 1000));
  bytes.pop_back();
  EXPECT_THAT(
      ErrorOf(bytes, 1000),
      HasSubstr("list of indices below 1000: wrong length for k = 3 (expected 8 bytes, got 7)"));
  EXPECT_THAT(ErrorOf({std::byte{1}}, 1000),
              HasSubstr("too short (expected at least 4 bytes, got 1"));
  EXPECT_THAT(ErrorOf({}, 1000), HasSubstr("too short (expected at least 4 bytes, got 0"));
}

TEST(IndexListTest, MoreIndicesThanValuesAreRefused) {
  EXPECT_THAT(ErrorOf(std::vector<std::byte>(4, std::byte{0xFF}), 1000),
              HasSubstr("too many (expected at most 1000, got 4294967295)"));
}

// The indices 500 and 499 have equal upper bits in Elias-Fano code, so only their low bits show
// that they descend.
TEST(IndexListTest, IndicesThatDescendOrExceedTheUniverseAreRefused) {
  EXPECT_NE(ErrorOf(BytesOf(EncodeIndexList(Indices{500, 499}, 1000)), 1000), "");
  EXPECT_NE(ErrorOf(BytesOf(EncodeIndexList(Indices{500, 500}, 1000)), 1000), "");
  // A list for indices below 1002 is decoded as a list for indices below 1000. Codes of both have
  // the same length, so only a check of the index itself can refuse the index 1001.
  EXPECT_NE(ErrorOf(BytesOf(EncodeIndexList(Indices{1001}, 1002)), 1000), "");
  EXPECT_EQ(ErrorOf(BytesOf(EncodeIndexList(Indices{999}, 1002)), 1000), "");
}

// A damaged list is refused, or its bytes are the correct encoding of another list.
TEST(IndexListTest, EveryDecodedListEncodesToTheSameBytes) {
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const size_t universe = 1 + random() % 300;
    Indices indices;
    for (uint32_t index = 0; index < universe; ++index) {
      if (random() % 8 == 0) indices.push_back(index);
    }
    std::vector<std::byte> bytes = BytesOf(EncodeIndexList(indices, universe));
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    const ByteChain list(bytes);
    const auto decoded = DecodeIndexList(list, universe);
    if (!decoded.ok()) {
      ++refused;
    } else {
      ASSERT_EQ(BytesOf(EncodeIndexList(*decoded, universe)), bytes) << "list " << i;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace thinwire
