#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "common/codec/error_feedback.h"
#include "common/model/matrix_run.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr CodecSpec kRank2 = {.id = CodecId::kPowerSgd};
constexpr size_t kRows = 40, kColumns = 50;

// Returns the sum of SIZES[k] u_k v_k^T, a matrix of kRows rows and kColumns columns. The vectors
// u_k are orthogonal to each other, and so are the vectors v_k. Each has the length 1.
std::vector<float> Matrix(const std::vector<double>& sizes) {
  std::vector<float> values(kRows * kColumns);
  const auto cosine = [](size_t k, size_t i, size_t n) {
    return std::cos(3.14159265358979 / static_cast<double>(n) * static_cast<double>(k + 1) *
                    (static_cast<double>(i) + 0.5)) *
           std::sqrt(2.0 / static_cast<double>(n));
  };
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t column = 0; column < kColumns; ++column) {
      double value = 0;
      for (size_t k = 0; k < sizes.size(); ++k) {
        value += sizes[k] * cosine(k, row, kRows) * cosine(k, column, kColumns);
      }
      values[row * kColumns + column] = static_cast<float>(value);
    }
  }
  return values;
}

// Encodes VALUES, whose position in their matrix is MEMORY.matrix, without a residual.
std::vector<std::byte> EncodeRun(const CodecSpec& spec, std::span<const float> values,
                                 CodecMemory& memory) {
  const auto codec = MakeCodec(spec).value();
  std::vector<float> residual(values.size());
  std::vector<std::byte> payload(codec->MaxPayloadBytes(values.size()));
  payload.resize(codec->EncodeFeedback(values, residual, RandomKeys(), memory, payload));
  return payload;
}

double LossOf(const std::vector<std::byte>& payload, std::span<const float> values) {
  return Nmse(Decoded(ByteChain(payload), values.size()), values);
}

TEST(PowerSgdTest, AMatrixOfTheCodecsRankIsSentWholly) {
  const std::vector<float> values = Matrix({3, 1});
  CodecMemory memory = {.matrix = {.columns = kColumns}};
  const auto payload = EncodeRun(kRank2, values, memory);
  EXPECT_EQ(PayloadCodec(CheckPayload(ByteChain(payload), values.size()).value()),
            CodecId::kPowerSgd);
  EXPECT_EQ(payload.size(), 10 + (1 + 4 * 2 * kRows) + (1 + 4 * 2 * kColumns));
  EXPECT_LT(LossOf(payload, values), 1e-12);
}

// The shard begins in column 30 of one row and ends in column 19 of another.
TEST(PowerSgdTest, ARunThatBeginsAndEndsWithinARowHasItsMatrixsRank) {
  const std::vector<float> matrix = Matrix({3, 1});
  const auto values = std::span(matrix).subspan(3 * kColumns + 30, 30 * kColumns - 10);
  CodecMemory memory = {.matrix = {.columns = kColumns, .first_column = 30}};
  // The values that are missing in the first and the last row are read as zeros. The rank of the
  // matrix with these rows is 4.
  const CodecSpec rank_4 = {.id = CodecId::kPowerSgd, .powersgd_rank = 4};
  EXPECT_LT(LossOf(EncodeRun(rank_4, values, memory), values), 1e-10);
  CodecMemory wrong = {.matrix = {.columns = kColumns, .first_column = 31}};
  EXPECT_GT(LossOf(EncodeRun(rank_4, values, wrong), values), 1e-3);
}

TEST(PowerSgdTest, RepeatedCallsFindTheBestApproximation) {
  const std::vector<float> values = Matrix({4, 3, 2, 1, 1, 0.5});
  const double best = (2 * 2 + 1 + 1 + 0.25) / (16 + 9 + 4 + 1 + 1 + 0.25);
  CodecMemory memory = {.matrix = {.columns = kColumns}};
  const double first = LossOf(EncodeRun(kRank2, values, memory), values);
  EXPECT_GT(first, 1.02 * best);
  double last = first;
  for (int call = 0; call < 30; ++call) last = LossOf(EncodeRun(kRank2, values, memory), values);
  EXPECT_NEAR(last, best, 1e-3 * best);
}

TEST(PowerSgdTest, ErrorFeedbackKeepsTheWarmStartAndRestoreForgetsIt) {
  const std::vector<float> values = Matrix({4, 3, 2, 1, 1, 0.5});
  const auto codec = MakeCodec(kRank2).value();
  const auto encode = [&](ErrorFeedback& feedback) {
    std::vector<std::byte> payload(codec->MaxPayloadBytes(values.size()));
    payload.resize(feedback.Encode(*codec, values, RandomKeys(), payload));
    return payload;
  };
  // Without error feedback, only the warm start connects two calls.
  ErrorFeedback feedback(values.size(), /*keep_error=*/false, std::pmr::get_default_resource(),
                         {.columns = kColumns});
  const auto first = encode(feedback), second = encode(feedback);
  EXPECT_TRUE(feedback.residual().empty());
  EXPECT_LT(LossOf(second, values), LossOf(first, values));
  feedback.Restore({});
  EXPECT_EQ(encode(feedback), first);
}

TEST(PowerSgdTest, AZeroMatrixDoesNotStopTheIteration) {
  const std::vector<float> zeros(kRows * kColumns), values = Matrix({3, 1});
  CodecMemory memory = {.matrix = {.columns = kColumns}};
  EXPECT_EQ(Decoded(ByteChain(EncodeRun(kRank2, zeros, memory)), zeros.size()), zeros);
  EXPECT_LT(LossOf(EncodeRun(kRank2, values, memory), values), 1e-12);
  // The second column of P and Q of a matrix of rank 1 is zero, too.
  EXPECT_LT(LossOf(EncodeRun(kRank2, Matrix({2}), memory), Matrix({2})), 1e-12);
  EXPECT_LT(LossOf(EncodeRun(kRank2, values, memory), values), 1e-12);
}

TEST(PowerSgdTest, AShardIsSentDenseUnlessThatTakesTwiceTheBytes) {
  const auto codec_of = [](const CodecSpec& spec, size_t columns, size_t count) {
    CodecMemory memory = {.matrix = {.columns = columns}};
    const auto payload = EncodeRun(spec, Gauss(count, 1), memory);
    return PayloadCodec(CheckPayload(ByteChain(payload), count).value());
  };
  EXPECT_EQ(codec_of(kRank2, 50, 2000), CodecId::kPowerSgd);
  EXPECT_EQ(codec_of(kRank2, 1, 2000), CodecId::kFp32) << "a column";
  EXPECT_EQ(codec_of(kRank2, 2000, 2000), CodecId::kFp32) << "a row";
  EXPECT_EQ(codec_of(kRank2, 5000, 2000), CodecId::kFp32) << "a part of a row";
  CodecSpec spec = kRank2;
  spec.powersgd_rank = 11;  // 11 * (40 + 50) = 990 values
  EXPECT_EQ(codec_of(spec, 50, 2000), CodecId::kPowerSgd);
  spec.powersgd_rank = 12;
  EXPECT_EQ(codec_of(spec, 50, 2000), CodecId::kFp32);
  spec.values = CodecId::kFp8E4m3;
  EXPECT_EQ(codec_of(spec, 50, 2000), CodecId::kFp8E4m3);
}

// The example of docs/powersgd.md: the matrix of 8 rows and 8 columns whose values are 2 in row 1 and
// 0 in the other rows.
TEST(PowerSgdTest, ThePayloadMatchesItsDocumentation) {
  std::vector<float> values(64);
  std::fill_n(values.begin() + 8, 8, 2.0f);
  const CodecSpec spec = {
      .id = CodecId::kPowerSgd, .values = CodecId::kFp8E5m2, .powersgd_rank = 1};
  std::vector<std::byte> expected;
  for (const int byte : {30, 1,    8,    0,    0,    0,    0,    0,    0,   0,   //
                         4,  0,    0x3C, 0,    0,    0,    0,    0,    0,        // P
                         4,  0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40}) {  // Q
    expected.push_back(static_cast<std::byte>(byte));
  }
  const std::vector<std::byte> payload = Encoded(*MakeCodec(spec).value(), values);
  EXPECT_EQ(payload, expected);
  EXPECT_EQ(Decoded(ByteChain(payload), 64), values);
}

TEST(PowerSgdTest, HostileHeadsAreRefused) {
  CodecMemory memory = {.matrix = {.columns = kColumns}};
  const std::vector<std::byte> payload = EncodeRun(kRank2, Matrix({3, 1}), memory);
  const auto error = [&](size_t at, uint32_t number, size_t bytes) {
    std::vector<std::byte> hostile = payload;
    std::memcpy(hostile.data() + at, &number, bytes);
    return std::string(CheckPayload(ByteChain(hostile), 2000).status().message());
  };
  const std::string place = "powersgd payload of 2000 values: ";
  EXPECT_EQ(error(1, 0, 1), place + "rank out of range (expected 1 to 32, got 0)");
  EXPECT_EQ(error(1, 33, 1), place + "rank out of range (expected 1 to 32, got 33)");
  EXPECT_EQ(error(1, 32, 1),
            place + "P and Q larger than the shard (expected at most 2000 values, got 2880)");
  EXPECT_EQ(error(2, 0, 4), place + "columns out of range (expected 1 to 2000, got 0)");
  EXPECT_EQ(error(2, 2001, 4), place + "columns out of range (expected 1 to 2000, got 2001)");
  EXPECT_EQ(error(6, 50, 4), place + "first column out of range (expected less than 50, got 50)");
  EXPECT_EQ(error(10, 30, 1),
            place + "values not in a dense codec (expected a dense one, got powersgd)");
  const auto error_of_first = [&](size_t bytes) {
    const ByteChain first({payload.data(), bytes}, nullptr);
    return std::string(CheckPayload(first, 2000).status().message());
  };
  EXPECT_EQ(error_of_first(9), place + "head too short (expected 10 bytes, got 9)");
  EXPECT_EQ(error_of_first(10), place + "no values (expected a codec id, got 0 bytes)");
  EXPECT_EQ(error_of_first(330), place + "wrong length (expected at least 331 bytes, got 330)");
  EXPECT_EQ(error_of_first(731), place + "wrong length (expected at least 732 bytes, got 731)");
}

TEST(PowerSgdTest, TheSumOfTwoWorkersPayloadsHasTheSumOfTheirRanks) {
  const std::vector<float> one = Matrix({3, 2}), other = Matrix({0, 0, 4, 1});
  std::vector<float> sum(one.size()), expected = one;
  for (size_t i = 0; i < one.size(); ++i) expected[i] += other[i];
  for (const std::vector<float>& values : {one, other}) {
    CodecMemory memory = {.matrix = {.columns = kColumns}};
    const ByteChain payload(EncodeRun(kRank2, values, memory));
    DecodePayloadAdd(CheckPayload(payload, values.size()).value(), 1.0f, sum);
  }
  EXPECT_LT(Nmse(sum, expected), 1e-12);
}

}  // namespace
}  // namespace thinwire
