#include "common/codec/table.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CodecTableTest, EachNumberHasItsName) {
  for (uint32_t number = 1; number <= CodecNames().size(); ++number) {
    const CodecId id = CodecIdFromWire(number).value();
    EXPECT_EQ(static_cast<uint32_t>(id), number);
    EXPECT_EQ(ParseCodec(CodecName(id)).value(), CodecSpec{.id = id});
  }
  std::ostringstream out;
  out << CodecId::kFp8E5m2;
  EXPECT_EQ(out.str(), "fp8_e5m2");
}

TEST(CodecTableTest, RowsAreCompleteAndGroupedByUse) {
  size_t low_rank_count = 0, gradients_only = 0, sparse_count = 0, dense_without_parameters = 0;
  for (const CodecRow& row : CodecTable()) {
    const bool low_rank = row.family == CodecFamily::kLowRank;
    EXPECT_EQ((row.values != nullptr) + (row.sparse != nullptr), low_rank ? 0 : 1) << row.name;
    if (low_rank) ++low_rank_count;
    if (!row.carries_deltas()) ++gradients_only;
    EXPECT_EQ(gradients_only > 0, !row.carries_deltas()) << row.name;
    EXPECT_EQ(row.codebook != nullptr, row.family == CodecFamily::kCodebook) << row.name;
    EXPECT_EQ(IsSparse(row.id), row.family == CodecFamily::kSparse) << row.name;
    ASSERT_NE(row.make, nullptr) << row.name;
    const auto codec = row.make(row, CodecSpec{.id = row.id});
    ASSERT_TRUE(codec.ok()) << codec.status();
    EXPECT_EQ((*codec)->id(), row.id);
    if (row.carries_parameters) {
      EXPECT_TRUE(row.dense()) << row.name;
      EXPECT_EQ(dense_without_parameters, 0u) << row.name;
    } else if (row.dense()) {
      EXPECT_EQ(sparse_count, 0u) << row.name;
      ++dense_without_parameters;
    } else if (row.carries_deltas()) {
      ++sparse_count;
    }
  }
  EXPECT_GT(sparse_count, 0u);
  EXPECT_EQ(low_rank_count, 1u);
  EXPECT_TRUE(CarriesParameters(CodecId::kFp8E4m3));
  EXPECT_FALSE(CarriesParameters(CodecId::kTable1));
  EXPECT_TRUE(IsDense(CodecId::kLog4));
  EXPECT_FALSE(IsDense(CodecId::kTopK));
  EXPECT_FALSE(IsDense(CodecId::kRandomK));
  EXPECT_FALSE(IsDense(static_cast<CodecId>(200)));
  EXPECT_FALSE(IsDense(CodecId::kPowerSgd));
  EXPECT_TRUE(IsSparse(CodecId::kRandomK));
  EXPECT_FALSE(IsSparse(CodecId::kPowerSgd));
  EXPECT_FALSE(IsSparse(CodecId::kDctTopK));
  EXPECT_FALSE(IsSparse(static_cast<CodecId>(200)));
  EXPECT_EQ(DeltaCodecNames().size(), CodecNames().size() - gradients_only);
  EXPECT_EQ(DenseCodecNames().size(), DeltaCodecNames().size() - sparse_count);
  EXPECT_EQ(ParameterCodecNames().size(), DenseCodecNames().size() - dense_without_parameters);
}

TEST(CodecTableTest, TableNumbersFollowTheirBits) {
  for (int bits = 1; bits <= 8; ++bits) {
    const std::string number = std::to_string(bits);
    EXPECT_EQ(static_cast<int>(ParseCodec("table_" + number)->id), 13 + bits);
    EXPECT_EQ(static_cast<int>(ParseCodec("lloyd_" + number)->id), 21 + bits);
  }
}

TEST(CodecTableTest, IndexCodersHaveNames) {
  EXPECT_EQ(ParseIndexCoder("elias_fano").value(), IndexCoder::kEliasFano);
  EXPECT_EQ(ParseIndexCoder("golomb_rice").value(), IndexCoder::kGolombRice);
  EXPECT_EQ(ParseIndexCoder("varint").status().message(),
            "index coder: unknown name (expected elias_fano or golomb_rice, got \"varint\")");
}

TEST(CodecTableTest, ErrorsOfUnknownNumbersAndNamesListTheKnownOnes) {
  const std::string count = std::to_string(CodecNames().size());
  EXPECT_EQ(CodecIdFromWire(0).status().message(),
            "codec: unknown number (expected 1 to " + count + ", got 0)");
  EXPECT_EQ(CodecIdFromWire(77).status().message(),
            "codec: unknown number (expected 1 to " + count + ", got 77)");
  const std::string message(ParseCodec("fp9").status().message());
  EXPECT_EQ(message.find("codec: unknown name (expected one of fp32, fp16, bf16, fp8_e5m2, "), 0u);
  EXPECT_NE(message.find("topk"), std::string::npos);
  EXPECT_NE(message.find("; got \"fp9\")"), std::string::npos);
}

}  // namespace
}  // namespace thinwire
