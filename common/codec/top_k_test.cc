#include "common/codec/top_k.h"

#include <random>
#include <vector>

#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

std::vector<std::byte> TopK(double density, CodecId values, std::span<const float> of) {
  return Encoded(*MakeTopKCodec(density, values).value(), of);
}

std::vector<std::byte> Bytes(std::initializer_list<int> bytes) {
  std::vector<std::byte> out;
  for (const int byte : bytes) out.push_back(static_cast<std::byte>(byte));
  return out;
}

std::string Error(const std::vector<std::byte>& payload, size_t count) {
  return std::string(CheckTopK(ByteChain(payload), count).message());
}

TEST(TopKCodecTest, OnlyTheLargestArrive) {
  const std::vector<float> values = {0.1f, -5, 2, 0, -0.5f, 3, 1, 1, 1, 1};
  EXPECT_EQ(Decoded(ByteChain(TopK(0.3, CodecId::kFp32, values)), 10),
            (std::vector<float>{0, -5, 2, 0, 0, 3, 0, 0, 0, 0}));
}

TEST(TopKCodecTest, OfEqualMagnitudesTheLowerIndexIsSent) {
  const std::vector<float> values = {1, -2, 2, -2, 2, 1};
  EXPECT_EQ(Decoded(ByteChain(TopK(0.5, CodecId::kFp32, values)), 6),
            (std::vector<float>{0, -2, 2, -2, 0, 0}));
}

TEST(TopKCodecTest, WhatIsRememberedChangesNoByte) {
  const std::vector<float> gradient = Gauss(20'000, 2), before = Gauss(20'000, 3);
  const auto codec = MakeTopKCodec(0.01, CodecId::kFp8E5m2).value();
  const auto encode = [&](uint32_t collect_from, std::vector<float>& residual) {
    CodecMemory memory{.collect_from = collect_from};
    std::vector<std::byte> payload(codec->MaxPayloadBytes(gradient.size()));
    residual = before;
    payload.resize(codec->EncodeFeedback(gradient, residual, Turn{}, memory, payload));
    return payload;
  };
  std::vector<float> residual, other_residual;
  const auto payload = encode(0, residual);
  for (const uint32_t collect_from : {1u, 0x3F800000u, 0x40400000u, 0x7F800000u, ~0u}) {
    EXPECT_EQ(encode(collect_from, other_residual), payload);
    EXPECT_EQ(other_residual, residual);
  }
}

TEST(TopKCodecTest, TheCountIsRoundedAndAtLeastOne) {
  const auto sent_count = [](double density, size_t count) {
    return std::to_integer<size_t>(TopK(density, CodecId::kFp32, Gauss(count, 1))[2]);
  };
  EXPECT_EQ(sent_count(0.01, 3), 1u);
  EXPECT_EQ(sent_count(0.01, 249), 2u);
  EXPECT_EQ(sent_count(0.01, 250), 3u);
  EXPECT_EQ(sent_count(1.0, 100), 100u);
  EXPECT_EQ(sent_count(0.5, 0), 0u);
}

// The bytes of docs/codecs.md: 2 of 16 values, so l = 3, and indices 4 and 9 are 100 and 001 in the
// low part (bits 001'100), 0 and 1 in the upper (bits 0 and 1 + 1).
TEST(TopKCodecTest, ThePayloadIsAsDocumented) {
  std::vector<float> values(16, 0.0f);
  values[4] = 1.0f;
  values[9] = -2.0f;
  EXPECT_EQ(TopK(2.0 / 16, CodecId::kFp8E5m2, values),
            Bytes({6, 4, 2, 0b001'100, 0b101, 0x3C, 0xC0}));
}

TEST(TopKCodecTest, AThousandthInFp8TakesFiveHundredthsOfABytePerValue) {
  const std::vector<float> values = Gauss(256 * 1024, 2);
  const size_t bytes = TopK(0.001, CodecId::kFp8E5m2, values).size();
  EXPECT_NEAR(static_cast<double>(bytes) / 262, 2.49, 0.03);  // 11.95 bits an index, 8 a value
}

TEST(TopKCodecTest, HostileHeadsAreRefused) {
  EXPECT_EQ(Error(Bytes({6}), 10), "topk payload of 10 values: want a head, got 1 bytes");
  EXPECT_EQ(Error(Bytes({6, 6, 1}), 10),
            "topk payload of 10 values: want a dense codec of the values, got 6");
  EXPECT_EQ(Error(Bytes({6, 0, 1}), 10),
            "topk payload of 10 values: want a dense codec of the values, got 0");
  EXPECT_EQ(Error(Bytes({6, 1, 0x80}), 10), "topk payload of 10 values: want a head, got 3 bytes");
  EXPECT_EQ(Error(Bytes({6, 1, 0x81, 0}), 10),
            "topk payload of 10 values: want k in 1 bytes, got 2");
  EXPECT_EQ(Error(Bytes({6, 1, 255, 255, 255, 255, 255, 255}), 10),
            "topk payload of 10 values: want k in at most 5 bytes, got more");
  EXPECT_EQ(Error(Bytes({6, 1, 255, 255, 255, 255, 15}), 10),
            "topk payload of 10 values: want k of at most 10, got 4294967295");
  EXPECT_EQ(Error(Bytes({6, 1, 10}), 10),
            "topk payload of 10 values: want 46 bytes for k = 10, got 3");
}

TEST(TopKCodecTest, IndicesThatAreNoneAreRefused) {
  std::vector<std::byte> payload = TopK(0.2, CodecId::kFp8E5m2, Gauss(50, 3));
  ASSERT_EQ(Error(payload, 50), "");
  for (std::byte& byte : std::span(payload).subspan(3, payload.size() - 13)) byte = std::byte{0};
  EXPECT_EQ(Error(payload, 50), "indices: want 10, got 0");
}

TEST(TopKCodecTest, NothingSentIsAPayloadToo) {
  const ByteChain payload(Bytes({6, 1, 0}));
  ASSERT_EQ(CheckTopK(payload, 5), absl::OkStatus());
  EXPECT_EQ(Decoded(payload, 5), std::vector<float>(5, 0.0f));
}

TEST(TopKCodecTest, AddingTouchesOnlyWhatWasSent) {
  const std::vector<float> values = {1, 9, 2, 8};
  std::vector<float> sum = {100, 100, 100, 100};
  DecodeTopKAdd(ByteChain(TopK(0.5, CodecId::kFp32, values)), 0.5f, sum);
  EXPECT_EQ(sum, (std::vector<float>{100, 104.5f, 100, 104}));
}

}  // namespace
}  // namespace thinwire
