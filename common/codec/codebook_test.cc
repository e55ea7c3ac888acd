#include "common/codec/codebook.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using testing::ElementsAre;

Codebook::Head HeadOf(uint8_t first, uint8_t second = 0, uint8_t third = 0) {
  return {std::byte{first}, std::byte{second}, std::byte{third}};
}

Codebook Book(const char* name, const Codebook::Head& head = {}) {
  return Codebook::Read(ParseCodec(name)->id, head).value();
}

std::vector<float> Table(const Codebook& book, std::vector<float> numbers, float scale = 1.0f) {
  std::vector<float> table(book.table_size());
  book.FillTable(numbers, scale, table);
  return table;
}

std::string Refusal(const char* name, const Codebook::Head& head) {
  return std::string(Codebook::Read(ParseCodec(name)->id, head).status().message());
}

TEST(CodebookTest, TheTopBitOfACodeIsItsSign) {
  EXPECT_THAT(Table(Book("table_2"), {0.5f, 2}), ElementsAre(0.5f, 2, -0.5f, -2));
  EXPECT_THAT(Table(Book("lloyd_1"), {3}, 0.5f), ElementsAre(1.5f, -1.5f));
  EXPECT_THAT(Table(Book("onebit_sign"), {3}), ElementsAre(3, -3));
  EXPECT_THAT(Table(Book("twobit"), {3}), ElementsAre(0, 3, 0, -3));
}

TEST(CodebookTest, OneBitHasANumberForEitherSign) {
  EXPECT_THAT(Table(Book("onebit"), {1, -2}, 2), ElementsAre(2, -4));
}

TEST(CodebookTest, QsgdHasEvenLevelsAndTheLargestForTheCodesBeyond) {
  EXPECT_THAT(Table(Book("qsgd", HeadOf(2)), {6}), ElementsAre(0, 3, 6, 6, 0, -3, -6, -6));
}

TEST(CodebookTest, Int8CountsStepsFromItsZero) {
  const std::vector<float> table = Table(Book("int8", HeadOf(10)), {0.5f});
  EXPECT_EQ(table[0], -5);
  EXPECT_EQ(table[10], 0);
  EXPECT_EQ(table[255], 122.5f);
}

TEST(CodebookTest, AFiniteStepOfInt8GivesFiniteValues) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::vector<float> table = Table(Book("int8", HeadOf(10)), {kMost});
  EXPECT_EQ(table[0], -kMost);
  EXPECT_EQ(table[255], kMost);
}

TEST(CodebookTest, Log4FallsInEvenRatiosFromTheLargest) {
  // 0x4000 is the upper half of 2, 128 a ratio of 1/2.
  const std::vector<float> table = Table(Book("log_4", HeadOf(0x00, 0x40, 128)), {});
  EXPECT_EQ(table[7], 2);
  EXPECT_EQ(table[6], 1);
  EXPECT_EQ(table[0], 2.0f / 128);
  EXPECT_EQ(table[15], -2);
}

TEST(CodebookTest, ABodyIsItsHeadItsNumbersAndWholeUnitsOfCodes) {
  EXPECT_EQ(Book("int8").BodyBytes(9), 1u + 4 + 16);
  EXPECT_EQ(Book("table_3").BodyBytes(9), 4 * 4u + 2 * 3);
  EXPECT_EQ(Book("onebit", HeadOf(8)).BodyBytes(17), 4u + 3 * 8 + 3);
  EXPECT_EQ(Book("qsgd", HeadOf(7)).BodyBytes(513), 1u + 2 * 4 + 65 * 4);
  EXPECT_EQ(Book("qsgd", HeadOf(7)).BodyBytes(0), 1u);
  EXPECT_EQ(Book("log_4").BodyBytes(8), 3u + 4);
}

TEST(CodebookTest, AHeadThatIsNoneIsRefused) {
  EXPECT_EQ(Refusal("qsgd", HeadOf(0)), "qsgd levels: want 1 to 127, got 0");
  EXPECT_EQ(Refusal("qsgd", HeadOf(128)), "qsgd levels: want 1 to 127, got 128");
  EXPECT_EQ(Refusal("onebit", HeadOf(12)), "onebit group: want a multiple of 8, got 12");
}

}  // namespace
}  // namespace thinwire
