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
  EXPECT_FALSE(IsDense(CodecId::kTopK));
}

TEST(CodecNamesTest, UnknownNumbersAndNamesSayWhatThereIs) {
  const std::string count = std::to_string(CodecNames().size());
  EXPECT_EQ(CodecIdFromWire(0).status().message(), "codec 0: want 1 to " + count);
  EXPECT_EQ(CodecIdFromWire(77).status().message(), "codec 77: want 1 to " + count);
  const std::string message(ParseCodec("fp9").status().message());
  EXPECT_EQ(message.find("codec: want one of fp32, fp16, bf16, fp8_e5m2, fp8_e4m3, "), 0u);
  EXPECT_NE(message.find("topk"), std::string::npos);
  EXPECT_NE(message.find("; got \"fp9\""), std::string::npos);
}

}  // namespace
}  // namespace thinwire
