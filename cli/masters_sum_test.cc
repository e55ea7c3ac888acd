#include "cli/masters_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "common/crc32c.h"

namespace thinwire {
namespace {

MastersChunk Chunk(const std::string& tensor, uint64_t offset, const std::string& values) {
  MastersChunk chunk;
  chunk.set_tensor(tensor);
  chunk.set_offset(offset);
  chunk.set_values(values);
  return chunk;
}

TEST(MastersSumTest, ThePiecesMayComeInAnyOrder) {
  MastersSum sum;
  ASSERT_TRUE(sum.Add(Chunk("b", 0, "bbbb")).ok());
  ASSERT_TRUE(sum.Add(Chunk("a", 2, "3333")).ok());
  ASSERT_TRUE(sum.Add(Chunk("a", 0, "11112222")).ok());
  const std::string whole = "111122223333bbbb";
  EXPECT_EQ(*sum.Crc32c(), Crc32c(std::as_bytes(std::span(whole))));
  EXPECT_EQ(sum.value_count(), 4);
}

TEST(MastersSumTest, AHoleAndAnOverlapAreErrors) {
  MastersSum hole;
  ASSERT_TRUE(hole.Add(Chunk("a", 1, "1111")).ok());
  EXPECT_EQ(hole.Crc32c().status().message(), "masters of a: want values from 0, got 1");
  MastersSum overlap;
  ASSERT_TRUE(overlap.Add(Chunk("a", 0, "11112222")).ok());
  ASSERT_TRUE(overlap.Add(Chunk("a", 1, "2222")).ok());
  EXPECT_FALSE(overlap.Crc32c().ok());
}

TEST(MastersSumTest, HalfAValueIsAnError) {
  EXPECT_FALSE(MastersSum().Add(Chunk("a", 0, "111")).ok());
}

}  // namespace
}  // namespace thinwire
