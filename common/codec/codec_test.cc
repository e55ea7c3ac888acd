#include "common/codec/codec.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CodecTest, MakeCodecRefusesAnInvalidSpec) {
  for (const double density : {0.0, -0.1, 1.5, std::nan("")}) {
    const CodecSpec spec = {.id = CodecId::kTopK, .density = density};
    EXPECT_EQ(MakeCodec(spec).status().code(), absl::StatusCode::kInvalidArgument) << density;
  }
  for (const CodecId id : {CodecId::kTopK, CodecId::kPowerSgd}) {
    const CodecSpec nested = {.id = CodecId::kTopK, .values = id};
    EXPECT_EQ(
        MakeCodec(nested).status().message(),
        "topk_values: not dense (expected a dense codec, got " + std::string(CodecName(id)) + ")");
  }
}

TEST(CodecTest, ValidateFindsEveryInvalidSetting) {
  EXPECT_TRUE(CodecSpec().Validate().empty());
  const CodecSpec spec = {.density = 2,
                          .least_sent = 0,
                          .values = CodecId::kRandomK,
                          .twobit_threshold = 0,
                          .qsgd_levels = 128,
                          .onebit_group = 12,
                          .powersgd_rank = 33};
  EXPECT_EQ(spec.Validate().ToStatus().message(),
            "density: out of range (expected above 0 and at most 1, got 2)\n"
            "topk_values: not dense (expected a dense codec, got randomk)\n"
            "topk_least: out of range (expected 1 to 262144, got 0)\n"
            "twobit_threshold: out of range (expected 1.2e-38 to 3.4e38, the range of a positive "
            "float, got 0)\n"
            "qsgd_levels: out of range (expected 1 to 127, got 128)\n"
            "onebit_group: out of range (expected a multiple of 8, got 12)\n"
            "powersgd_rank: out of range (expected 1 to 32, got 33)");
}

TEST(CodecTest, APayloadWithoutACodecIsRefused) {
  EXPECT_EQ(CheckPayload(ByteChain(), 3).status().message(),
            "payload: no bytes (expected a codec id, got 0 bytes)");
  const ByteChain unknown(std::vector<std::byte>{std::byte{200}});
  EXPECT_EQ(
      CheckPayload(unknown, 0).status().message(),
      "codec: unknown number (expected 1 to " + std::to_string(CodecNames().size()) + ", got 200)");
}

TEST(CodecTest, TheEntriesOfASparsePayloadComeInOrder) {
  std::vector<float> values(5000, 0.0f);
  for (size_t i = 3; i < values.size(); i += 4) values[i] = static_cast<float>(i);
  const auto codec = MakeCodec({.id = CodecId::kTopK, .density = 0.25}).value();
  const auto payload = CheckPayload(ByteChain(Encoded(*codec, values)), values.size()).value();
  ASSERT_TRUE(PayloadIsSparse(payload));
  uint32_t next = 3;
  ForEachPayloadEntry(payload, [&](auto indices, auto entries) {
    ASSERT_EQ(indices.size(), entries.size());
    for (size_t j = 0; j < indices.size(); ++j, next += 4) {
      ASSERT_EQ(indices[j], next);
      ASSERT_EQ(entries[j], values[next]);
    }
  });
  EXPECT_EQ(next, 5003u);
  const ByteChain dense(Encoded(*MakeCodec({}).value(), values));
  EXPECT_FALSE(PayloadIsSparse(CheckPayload(dense, values.size()).value()));
}

TEST(CodecTest, TheErrorOfAWrongLengthNamesBothLengths) {
  std::vector<std::byte> bytes(4000);
  bytes[0] = std::byte{1};
  EXPECT_EQ(CheckPayload(ByteChain(bytes), 1024).status().message(),
            "fp32 payload of 1024 values: wrong length (expected 4097 bytes, got 4000)");
}

TEST(CodecTest, AScaleByteOutOfRangeIsRefused) {
  std::vector<std::byte> bytes(4);
  bytes[0] = std::byte{5};
  EXPECT_EQ(CheckPayload(ByteChain(bytes), 2).status().message(),
            "fp8_e4m3 payload of 2 values: scale byte out of range (expected 1 to 246, got 0)");
  bytes[1] = std::byte{247};
  EXPECT_FALSE(CheckPayload(ByteChain(bytes), 2).ok());
  bytes[1] = std::byte{246};
  EXPECT_TRUE(CheckPayload(ByteChain(bytes), 2).ok());
}

TEST(CodecTest, ALentPayloadHasTheBytesOfAnEncodedOne) {
  const std::vector<float> values = Gauss(100, 1);
  EXPECT_EQ(LendFp32(values, nullptr), ByteChain(Encoded(*MakeCodec({}).value(), values)));
}

TEST(CodecTest, EncodeEntriesSendsTheGivenEntriesBitForBit) {
  std::mt19937 bits(3);
  for (const size_t n : {1, 2, 100, 5000}) {
    for (const uint32_t every : {1, 2, 50, 1000000}) {
      std::vector<float> values(n), expected(n, 0.0f);
      std::vector<uint32_t> indices;
      for (uint32_t i = 0; i < n; ++i) {
        values[i] = static_cast<float>(bits()) * (bits() % 2 == 0 ? 1e-20f : -1e-44f);
        if (bits() % every != 0) continue;
        indices.push_back(i);
        expected[i] = values[i];
      }
      const std::vector<float> decoded = Decoded(EncodeEntries(values, indices), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), std::bit_cast<uint32_t>(expected[i])) << i;
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
