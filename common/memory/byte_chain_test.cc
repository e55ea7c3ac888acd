#include "common/memory/byte_chain.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (int v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}

ByteChain OneTwoThreeFourFive() {
  ByteChain chain(Bytes({1, 2}));
  chain.Append(ByteChain(Bytes({3})));
  chain.Append(ByteChain(Bytes({4, 5})));
  return chain;
}

TEST(ByteChainTest, ReadsAcrossItsPieces) {
  const ByteChain chain = OneTwoThreeFourFive();
  EXPECT_EQ(chain.size(), 5u);
  EXPECT_EQ(chain.pieces().size(), 3u);
  EXPECT_EQ(chain.ToVector(), Bytes({1, 2, 3, 4, 5}));
  EXPECT_EQ(chain.At(3), std::byte{4});
}

TEST(ByteChainTest, SubReturnsEveryRange) {
  const ByteChain chain = OneTwoThreeFourFive();
  for (size_t offset = 0; offset <= 5; ++offset) {
    for (size_t length = 0; offset + length <= 5; ++length) {
      const auto all = chain.ToVector();
      const std::vector<std::byte> want(all.begin() + offset, all.begin() + offset + length);
      EXPECT_EQ(chain.Sub(offset, length).ToVector(), want) << offset << " " << length;
    }
  }
}

TEST(ByteChainTest, ChainsWithEqualBytesAreEqualForAllPieces) {
  EXPECT_EQ(OneTwoThreeFourFive(), ByteChain(Bytes({1, 2, 3, 4, 5})));
  EXPECT_FALSE(OneTwoThreeFourFive() == ByteChain(Bytes({1, 2, 3, 4, 6})));
  EXPECT_FALSE(OneTwoThreeFourFive() == ByteChain(Bytes({1, 2, 3, 4})));
}

TEST(ByteChainTest, ASinglePieceIsContiguousWithoutACopy) {
  const ByteChain chain(Bytes({7, 8}));
  std::vector<std::byte> scratch;
  EXPECT_EQ(chain.Contiguous(scratch).data(), chain.pieces()[0].bytes.data());
  EXPECT_TRUE(scratch.empty());
}

TEST(ByteChainTest, AnOwnerLivesAsLongAsAnyChainOfItsBytes) {
  auto token = std::make_shared<const int>(1);
  std::weak_ptr<const int> watch = token;
  ByteChain cut;
  {
    ByteChain chain = OneTwoThreeFourFive();
    chain.Hold(std::move(token));
    cut = chain.Sub(1, 1);
  }
  EXPECT_FALSE(watch.expired());
  cut = ByteChain();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace thinwire
