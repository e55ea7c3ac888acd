#include "common/codec/codebook/codebook.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "common/codec/codebook/codebook_encoder.h"
#include "common/codec/codebook/codebook_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using testing::ElementsAre;

CodebookHead HeadOf(uint8_t first, uint8_t second = 0, uint8_t third = 0) {
  return {std::byte{first}, std::byte{second}, std::byte{third}};
}

std::vector<float> Table(const CodebookFormat& format, std::vector<float> numbers,
                         const CodebookHead& head = {}, float scale = 1.0f) {
  std::vector<float> table(format.Shape(head).value().table_size());
  format.FillTable(head, numbers, scale, table);
  return table;
}

size_t BodyBytes(const CodebookFormat& format, size_t count, const CodebookHead& head = {}) {
  return format.Shape(head).value().BodyBytes(count);
}

std::string Refusal(const CodebookFormat& format, const CodebookHead& head) {
  return std::string(format.Shape(head).status().message());
}

TEST(CodebookTest, TheTopBitOfACodeIsItsSign) {
  EXPECT_THAT(Table(TableFormat(2), {0.5f, 2}), ElementsAre(0.5f, 2, -0.5f, -2));
  EXPECT_THAT(Table(LloydFormat(1), {3}, {}, 0.5f), ElementsAre(1.5f, -1.5f));
  EXPECT_THAT(Table(OneBitSignFormat(), {3}), ElementsAre(3, -3));
  EXPECT_THAT(Table(TwoBitFormat(), {3}), ElementsAre(0, 3, 0, -3));
}

TEST(CodebookTest, OneBitHasOneNumberPerSign) {
  EXPECT_THAT(Table(OneBitFormat(), {1, -2}, {}, 2), ElementsAre(2, -4));
}

TEST(CodebookTest, QsgdHasEvenLevelsAndTheLargestForTheCodesBeyond) {
  EXPECT_THAT(Table(QsgdFormat(), {6}, HeadOf(2)), ElementsAre(0, 3, 6, 6, 0, -3, -6, -6));
}

TEST(CodebookTest, Int8CountsStepsFromItsZero) {
  const std::vector<float> table = Table(Int8Format(), {0.5f}, HeadOf(10));
  EXPECT_EQ(table[0], -5);
  EXPECT_EQ(table[10], 0);
  EXPECT_EQ(table[255], 122.5f);
}

TEST(CodebookTest, AFiniteStepOfInt8GivesFiniteValues) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::vector<float> table = Table(Int8Format(), {kMax}, HeadOf(10));
  EXPECT_EQ(table[0], -kMax);
  EXPECT_EQ(table[255], kMax);
}

TEST(CodebookTest, Log4FallsInEvenRatiosFromTheLargest) {
  // The head of this log_4 payload contains 0x4000, the upper half of the float 2, and 128, which
  // stands for a ratio of 1 - 128/256 = 1/2.
  const std::vector<float> table = Table(Log4Format(), {}, HeadOf(0x00, 0x40, 128));
  EXPECT_EQ(table[7], 2);
  EXPECT_EQ(table[6], 1);
  EXPECT_EQ(table[0], 2.0f / 128);
  EXPECT_EQ(table[15], -2);
}

TEST(CodebookTest, Fp4E3m0HasZeroAndSevenPowersOfTwo) {
  EXPECT_THAT(Table(Fp4E3m0Format(), {8}),
              ElementsAre(0, .125f, .25f, .5f, 1, 2, 4, 8, 0, -.125f, -.25f, -.5f, -1, -2, -4, -8));
}

TEST(CodebookTest, Fp4E3m0EncodesTheNearestValueOfTheGroupsUnit) {
  const auto codec = MakeCodebookCodec(Fp4E3m0Format(), {}).value();
  // Two groups of 512 values, whose largest magnitudes are 8 and 64.
  std::vector<float> values(1024, 0.0f);
  const float first[] = {8, -3.1f, 2.9f, 0.07f, -0.06f};
  std::ranges::copy(first, values.begin());
  const float second[] = {-64, 49, 47, 0.4f};
  std::ranges::copy(second, values.begin() + 512);
  std::vector<std::byte> payload(codec->MaxPayloadBytes(values.size()));
  EXPECT_EQ(codec->Encode(values, {}, payload), 1u + 2 * 4 + 512);
  const ByteChain chain(std::move(payload));
  std::vector<float> decoded(values.size());
  Fp4E3m0Format().Decode({chain, 1, values.size()}, 0, 1.0f, decoded);
  EXPECT_THAT(std::span(decoded).first(6), ElementsAre(8, -4, 2, .125f, 0, 0));
  EXPECT_THAT(std::span(decoded).subspan(512, 5), ElementsAre(-64, 64, 32, 0, 0));
}

TEST(CodebookTest, ABodyHasAHeadNumbersAndWholeUnitsOfCodes) {
  EXPECT_EQ(BodyBytes(Int8Format(), 9), 1u + 4 + 16);
  EXPECT_EQ(BodyBytes(TableFormat(3), 9), 4 * 4u + 2 * 3);
  EXPECT_EQ(BodyBytes(OneBitFormat(), 17, HeadOf(8)), 4u + 3 * 8 + 3);
  EXPECT_EQ(BodyBytes(QsgdFormat(), 513, HeadOf(7)), 1u + 2 * 4 + 65 * 4);
  EXPECT_EQ(BodyBytes(QsgdFormat(), 0, HeadOf(7)), 1u);
  EXPECT_EQ(BodyBytes(Log4Format(), 8), 3u + 4);
}

TEST(CodebookTest, AMalformedHeadIsRefused) {
  EXPECT_EQ(Refusal(QsgdFormat(), HeadOf(0)), "levels out of range (expected 1 to 127, got 0)");
  EXPECT_EQ(Refusal(QsgdFormat(), HeadOf(128)), "levels out of range (expected 1 to 127, got 128)");
  EXPECT_EQ(Refusal(OneBitFormat(), HeadOf(12)), "bad group (expected a multiple of 8, got 12)");
}

}  // namespace
}  // namespace thinwire
