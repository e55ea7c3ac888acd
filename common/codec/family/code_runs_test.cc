#include "common/codec/family/code_runs.h"

#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

std::vector<std::byte> ConsecutiveBytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

// Returns the bytes of the COUNT codes that begin at byte OFFSET of CHAIN, as ForEachCodeRun passes
// them to its callback. Checks that each call continues where the previous call ended.
template <size_t kCodeBytes>
std::vector<std::byte> BytesOfRuns(const ByteChain& chain, size_t offset, size_t count) {
  std::vector<std::byte> seen;
  ForEachCodeRun(chain, offset, kCodeBytes, count,
                 [&](const std::byte* codes, size_t first, size_t n) {
                   EXPECT_EQ(first * kCodeBytes, seen.size());
                   seen.insert(seen.end(), codes, codes + n * kCodeBytes);
                 });
  return seen;
}

TEST(CodeRunsTest, EveryByteComesOnceForEveryCutOfTheChain) {
  const std::vector<std::byte> bytes = ConsecutiveBytes(43);
  const std::vector<std::byte> want(bytes.begin() + 3, bytes.begin() + 3 + 4 * 9);
  for (size_t first_cut = 0; first_cut <= bytes.size(); ++first_cut) {
    for (size_t second_cut = first_cut; second_cut <= bytes.size(); ++second_cut) {
      ByteChain chain;
      chain.Append(std::span(bytes).first(first_cut), nullptr);
      chain.Append(std::span(bytes).subspan(first_cut, second_cut - first_cut), nullptr);
      chain.Append(std::span(bytes).subspan(second_cut), nullptr);
      ASSERT_EQ(BytesOfRuns<4>(chain, 3, 9), want) << first_cut << " " << second_cut;
    }
  }
}

TEST(CodeRunsTest, OnePieceIsOneRun) {
  const std::vector<std::byte> bytes = ConsecutiveBytes(9);
  size_t runs = 0;
  ForEachCodeRun(ByteChain(bytes, nullptr), 1, 2, 4, [&](const std::byte* codes, size_t, size_t n) {
    EXPECT_EQ(codes, bytes.data() + 1);
    EXPECT_EQ(n, 4u);
    ++runs;
  });
  EXPECT_EQ(runs, 1u);
}

TEST(CodeRunsTest, CodesInPiecesOfOneByteAreCopied) {
  const std::vector<std::byte> bytes = ConsecutiveBytes(12);
  ByteChain chain;
  for (const std::byte& byte : bytes) chain.Append(std::span(&byte, 1), nullptr);
  EXPECT_EQ(BytesOfRuns<4>(chain, 0, 3), bytes);
}

TEST(CodeRunsTest, ZeroCodesGiveNoRun) {
  EXPECT_TRUE(BytesOfRuns<4>(ByteChain(), 0, 0).empty());
  EXPECT_TRUE(BytesOfRuns<4>(ByteChain(ConsecutiveBytes(1)), 1, 0).empty());
}

}  // namespace
}  // namespace thinwire
