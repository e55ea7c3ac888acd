#include "common/codec/codec.h"

#include <cmath>
#include <sstream>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CodecTest, NamesAndNumbersBelongTogether) {
  for (uint32_t number = 1; number <= 6; ++number) {
    const CodecId id = CodecIdFromWire(number).value();
    EXPECT_EQ(static_cast<uint32_t>(id), number);
    EXPECT_EQ(ParseCodecName(CodecName(id)).value(), id);
    EXPECT_EQ(IsDense(id), id != CodecId::kTopK);
  }
  std::ostringstream out;
  out << CodecId::kFp8E5m2;
  EXPECT_EQ(out.str(), "fp8_e5m2");
}

TEST(CodecTest, UnknownNumbersAndNamesSayWhatThereIs) {
  EXPECT_EQ(CodecIdFromWire(0).status().message(), "codec 0: want 1 to 6");
  EXPECT_EQ(CodecIdFromWire(77).status().message(), "codec 77: want 1 to 6");
  EXPECT_EQ(ParseCodecName("fp9").status().message(),
            "codec: want one of fp32, fp16, bf16, fp8_e5m2, fp8_e4m3, topk; got \"fp9\"");
}

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
