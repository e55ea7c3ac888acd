#include "proto/grpc_bytes.h"

#include <grpcpp/support/slice.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

std::vector<std::byte> Bytes(size_t count, int first) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

TEST(GrpcBytesTest, AnEmptyChainIsAnEmptyBuffer) {
  const grpc::ByteBuffer buffer = ToByteBuffer(ByteChain());
  EXPECT_EQ(buffer.Length(), 0u);
  EXPECT_TRUE(FromByteBuffer(buffer).empty());
  EXPECT_TRUE(FromByteBuffer(grpc::ByteBuffer()).empty());
}

TEST(GrpcBytesTest, SmallAndLargePiecesComeBackInOrder) {
  ByteChain chain;
  for (size_t count : {3, 5000, 1, 1, 70000, 100000, 20}) {
    chain.Append(ByteChain(Bytes(count, static_cast<int>(count))));
  }
  const grpc::ByteBuffer buffer = ToByteBuffer(chain);
  EXPECT_EQ(FromByteBuffer(buffer), chain);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_EQ(slices.size(), 6u);  // the two adjacent small pieces share a slice
}

TEST(GrpcBytesTest, ALargePieceIsSharedBothWays) {
  const ByteChain chain(Bytes(100000, 0));
  const ByteChain again = FromByteBuffer(ToByteBuffer(chain));
  ASSERT_EQ(again.pieces().size(), 1u);
  EXPECT_EQ(again.pieces()[0].bytes.data(), chain.pieces()[0].bytes.data());
}

TEST(GrpcBytesTest, TheOwnerLivesUntilTheLastUser) {
  auto owner = std::make_shared<std::vector<std::byte>>(Bytes(100000, 0));
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  ByteChain chain(*owner, owner);
  owner.reset();
  grpc::ByteBuffer buffer = ToByteBuffer(chain);
  chain = ByteChain();
  ByteChain again = FromByteBuffer(buffer);
  buffer.Clear();
  ASSERT_FALSE(watch.expired());
  EXPECT_EQ(again.At(77), std::byte{77});
  again = ByteChain();
  EXPECT_TRUE(watch.expired());
}

TEST(GrpcBytesTest, APieceWithoutAnOwnerIsCopied) {
  std::vector<std::byte> bytes = Bytes(10000, 0);
  const grpc::ByteBuffer buffer = ToByteBuffer(ByteChain(bytes, nullptr));
  bytes[0] = std::byte{99};
  EXPECT_EQ(FromByteBuffer(buffer).At(0), std::byte{0});
}

TEST(GrpcBytesTest, ShortSlicesOutliveTheirBuffer) {
  grpc::Slice slices[] = {grpc::Slice("ab"), grpc::Slice("cde")};
  ByteChain chain;
  {
    const grpc::ByteBuffer buffer(slices, 2);
    chain = FromByteBuffer(buffer);
  }
  ASSERT_EQ(chain.size(), 5u);
  EXPECT_EQ(chain.At(4), std::byte{'e'});
}

}  // namespace
}  // namespace thinwire
