#include "common/codec/codec_names.h"

#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CodecNamesTest, NamesAndNumbersBelongTogether) {
  for (uint32_t number = 1; number <= CodecNames().size(); ++number) {
    const CodecId id = CodecIdFromWire(number).value();
    EXPECT_EQ(static_cast<uint32_t>(id), number);
    EXPECT_EQ(ParseCodec(CodecName(id)).value(), CodecSpec{.id = id});
  }
  std::ostringstream out;
  out << CodecId::kFp8E5m2;
  EXPECT_EQ(out.str(), "fp8_e5m2");
}

TEST(CodecNamesTest, WhatCarriesParametersIsDense) {
  for (const std::string_view name : CodecNames()) {
    const CodecId id = ParseCodec(name)->id;
    EXPECT_TRUE(IsDense(id) || !CarriesParameters(id)) << id;
  }
  EXPECT_TRUE(CarriesParameters(CodecId::kFp8E4m3));
  EXPECT_FALSE(CarriesParameters(CodecId::kTable1));
  EXPECT_TRUE(IsDense(CodecId::kLog4));
  EXPECT_FALSE(IsDense(CodecId::kTopK));
  EXPECT_FALSE(IsDense(CodecId::kRandomK));
}

TEST(CodecNamesTest, ATableIsNumberedByItsBits) {
  for (int bits = 1; bits <= 8; ++bits) {
    const std::string number = std::to_string(bits);
    EXPECT_EQ(static_cast<int>(ParseCodec("table_" + number)->id), 13 + bits);
    EXPECT_EQ(static_cast<int>(ParseCodec("lloyd_" + number)->id), 21 + bits);
  }
}

TEST(CodecNamesTest, IndexCodersHaveNames) {
  EXPECT_EQ(ParseIndexCoder("elias_fano").value(), IndexCoder::kEliasFano);
  EXPECT_EQ(ParseIndexCoder("golomb_rice").value(), IndexCoder::kGolombRice);
  EXPECT_EQ(ParseIndexCoder("varint").status().message(),
            "indices: want one of elias_fano, golomb_rice; got \"varint\"");
}

TEST(CodecNamesTest, UnknownNumbersAndNamesSayWhatThereIs) {
  const std::string count = std::to_string(CodecNames().size());
  EXPECT_EQ(CodecIdFromWire(0).status().message(), "codec 0: want 1 to " + count);
  EXPECT_EQ(CodecIdFromWire(77).status().message(), "codec 77: want 1 to " + count);
  const std::string message(ParseCodec("fp9").status().message());
  EXPECT_EQ(message.find("codec: want one of fp32, fp16, bf16, fp8_e5m2, fp8_e4m3, int8, "), 0u);
  EXPECT_NE(message.find("topk"), std::string::npos);
  EXPECT_NE(message.find("; got \"fp9\""), std::string::npos);
}

}  // namespace
}  // namespace thinwire
