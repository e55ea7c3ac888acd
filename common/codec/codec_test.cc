#include "common/codec/codec.h"

#include <cmath>

#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CodecTest, SpecsThatMakeNoCodecAreRefused) {
  for (const double density : {0.0, -0.1, 1.5, std::nan("")}) {
    const CodecSpec spec = {.id = CodecId::kTopK, .density = density};
    EXPECT_EQ(MakeCodec(spec).status().code(), absl::StatusCode::kInvalidArgument) << density;
  }
  const CodecSpec nested = {.id = CodecId::kTopK, .values = CodecId::kTopK};
  EXPECT_EQ(MakeCodec(nested).status().message(), "topk values: want a dense codec, got topk");
}

TEST(CodecTest, PayloadsOfNoCodecAreRefused) {
  EXPECT_EQ(CheckPayload(ByteChain(), 3).message(), "payload: want a codec byte, got 0 bytes");
  const ByteChain unknown(std::vector<std::byte>{std::byte{200}});
  EXPECT_FALSE(CheckPayload(unknown, 0).ok());
}

TEST(CodecTest, WhatASparsePayloadSentIsShownInOrder) {
  std::vector<float> values(5000, 0.0f);
  for (size_t i = 3; i < values.size(); i += 4) values[i] = static_cast<float>(i);
  const auto codec = MakeCodec({.id = CodecId::kTopK, .density = 0.25}).value();
  const ByteChain payload(Encoded(*codec, values));
  ASSERT_TRUE(PayloadIsSparse(payload));
  uint32_t next = 3;
  ForEachSent(payload, values.size(), [&](auto indices, auto sent) {
    ASSERT_EQ(indices.size(), sent.size());
    for (size_t j = 0; j < indices.size(); ++j, next += 4) {
      ASSERT_EQ(indices[j], next);
      ASSERT_EQ(sent[j], values[next]);
    }
  });
  EXPECT_EQ(next, 5003u);
  EXPECT_FALSE(PayloadIsSparse(ByteChain(Encoded(*MakeCodec({}).value(), values))));
}

TEST(CodecTest, ADensePayloadOfAnotherLengthSaysBoth) {
  std::vector<std::byte> bytes(4000);
  bytes[0] = std::byte{1};
  EXPECT_EQ(CheckPayload(ByteChain(bytes), 1024).message(),
            "fp32 payload of 1024 values: want 4097 bytes, got 4000");
}

TEST(CodecTest, AScaleByteBeyondItsLimitsIsRefused) {
  std::vector<std::byte> bytes(4);
  bytes[0] = std::byte{5};
  EXPECT_EQ(CheckPayload(ByteChain(bytes), 2).message(),
            "fp8_e4m3 scale byte: want 1 to 246, got 0");
  bytes[1] = std::byte{247};
  EXPECT_FALSE(CheckPayload(ByteChain(bytes), 2).ok());
  bytes[1] = std::byte{246};
  EXPECT_TRUE(CheckPayload(ByteChain(bytes), 2).ok());
}

}  // namespace
}  // namespace thinwire
