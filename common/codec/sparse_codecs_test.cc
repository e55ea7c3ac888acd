#include <random>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "common/codec/sparse/sparse_payload.h"
#include "gtest/gtest.h"
#include "kernels/mix_bits.h"

namespace thinwire {
namespace {

std::vector<std::byte> TopK(double density, CodecId values, std::span<const float> of) {
  return Encoded(*MakeCodec({.id = CodecId::kTopK, .density = density, .values = values}).value(),
                 of);
}

std::vector<std::byte> Bytes(std::initializer_list<int> bytes) {
  std::vector<std::byte> out;
  for (const int byte : bytes) out.push_back(static_cast<std::byte>(byte));
  return out;
}

// Returns the message of CheckPayload's error, "" for a valid payload.
std::string Error(const std::vector<std::byte>& payload, size_t count) {
  return std::string(CheckPayload(ByteChain(payload), count).status().message());
}

TEST(TopKCodecTest, OnlyTheLargestValuesAreSent) {
  const std::vector<float> values = {0.1f, -5, 2, 0, -0.5f, 3, 1, 1, 1, 1};
  EXPECT_EQ(Decoded(ByteChain(TopK(0.3, CodecId::kFp32, values)), 10),
            (std::vector<float>{0, -5, 2, 0, 0, 3, 0, 0, 0, 0}));
}

TEST(TopKCodecTest, TheLowerOfTwoIndicesWithEqualMagnitudesIsSent) {
  const std::vector<float> values = {1, -2, 2, -2, 2, 1};
  EXPECT_EQ(Decoded(ByteChain(TopK(0.5, CodecId::kFp32, values)), 6),
            (std::vector<float>{0, -2, 2, -2, 0, 0}));
}

TEST(TopKCodecTest, CodecMemoryChangesNoByte) {
  const std::vector<float> gradient = Gauss(20'000, 2), before = Gauss(20'000, 3);
  const auto codec =
      MakeCodec({.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp8E5m2}).value();
  const auto encode = [&](uint32_t threshold, std::vector<float>& residual) {
    CodecMemory memory{.threshold = threshold};
    std::vector<std::byte> payload(codec->MaxPayloadBytes(gradient.size()));
    residual = before;
    payload.resize(codec->EncodeFeedback(gradient, residual, RandomKeys(), memory, payload));
    return payload;
  };
  std::vector<float> residual, other_residual;
  const auto payload = encode(0, residual);
  for (const uint32_t threshold : {1u, 0x3F800000u, 0x40400000u, 0x7F800000u, ~0u}) {
    EXPECT_EQ(encode(threshold, other_residual), payload);
    EXPECT_EQ(other_residual, residual);
  }
}

TEST(TopKCodecTest, TheEntryCountIsRoundedAndHasALowerLimit) {
  const auto entry_count = [](double density, size_t count) {
    return SparseEntryCount(density, count);
  };
  EXPECT_EQ(entry_count(0.01, 3), 1u);
  EXPECT_EQ(entry_count(0.01, 249), 2u);
  EXPECT_EQ(entry_count(0.01, 250), 3u);
  EXPECT_EQ(entry_count(1.0, 100), 100u);
  EXPECT_EQ(entry_count(0.5, 0), 0u);
  EXPECT_EQ(SparseEntryCount(0.01, 249, 16), 16u);
  EXPECT_EQ(SparseEntryCount(0.01, 5000, 16), 50u);
  EXPECT_EQ(SparseEntryCount(0.01, 9, 16), 9u);
}

// The example of docs/codecs.md: 2 of 64 values, so l = 5. The indices 4 and 41 have the low bits
// 00100 and 01001 (01001'00100 in the low part), and the upper bits 0 and 1 (bits 0 and 1 + 1 are
// set).
TEST(TopKCodecTest, ThePayloadMatchesItsDocumentation) {
  std::vector<float> values(64, 0.0f);
  values[4] = 1.0f;
  values[41] = -2.0f;
  EXPECT_EQ(TopK(2.0 / 64, CodecId::kFp8E5m2, values),
            Bytes({6, 4, 4, 0x3C, 0xC0, 0b001'00100, 0b01, 0b101}));
}

TEST(TopKCodecTest, PayloadsOfAThousandthHaveTheDocumentedSizes) {
  const auto bytes = [](const std::vector<float>& values, CodecId id, IndexCoder indices) {
    const CodecSpec spec = {
        .id = CodecId::kTopK, .density = 0.001, .values = id, .indices = indices};
    return static_cast<double>(Encoded(*MakeCodec(spec).value(), values).size()) / 262;
  };
  for (const auto& values : {Gauss(256 * 1024, 2), Laplace(256 * 1024, 3)}) {
    EXPECT_LE(bytes(values, CodecId::kFp8E5m2, IndexCoder::kEliasFano), 2.52);
    EXPECT_LE(bytes(values, CodecId::kFp8E5m2, IndexCoder::kGolombRice), 2.46);
    EXPECT_LE(bytes(values, CodecId::kLog4, IndexCoder::kGolombRice), 1.97);
  }
}

// With density 0.5, a sparse payload can take more bytes than a dense payload of all values.
TEST(TopKCodecTest, AShardIsSentDenseIfThatIsNotLarger) {
  const std::vector<float> values = Gauss(1000, 4);
  const auto codec_of = [&](double density, CodecId id) {
    return PayloadCodec(CheckPayload(ByteChain(TopK(density, id, values)), 1000).value());
  };
  EXPECT_EQ(codec_of(0.9, CodecId::kFp32), CodecId::kTopK);
  EXPECT_EQ(codec_of(1.0, CodecId::kFp32), CodecId::kFp32);
  EXPECT_EQ(codec_of(0.7, CodecId::kFp8E5m2), CodecId::kTopK);
  EXPECT_EQ(codec_of(0.9, CodecId::kFp8E5m2), CodecId::kFp8E5m2);
  EXPECT_EQ(codec_of(0.5, CodecId::kOneBit), CodecId::kOneBit);
}

TEST(TopKCodecTest, HostileHeadsAreRefused) {
  const auto error = [](std::initializer_list<int> bytes) { return Error(Bytes(bytes), 10); };
  const std::string place = "topk payload of 10 values: ";
  EXPECT_EQ(error({6}), place + "head too short (got 1 bytes)");
  EXPECT_EQ(error({6, 2, 6}),
            place + "values not in a dense codec (expected a dense one, got topk)");
  EXPECT_EQ(error({6, 2, 0}), place + "codec: unknown number (expected 1 to " +
                                  std::to_string(CodecNames().size()) + ", got 0)");
  EXPECT_EQ(error({6, 2}), place + "no values (expected a codec id, got 0 bytes)");
  EXPECT_EQ(error({6, 0x80}), place + "head too short (got 2 bytes)");
  EXPECT_EQ(error({6, 0x81, 0}), place + "k takes too many bytes (expected 1, got 2)");
  EXPECT_EQ(error({6, 255, 255, 255, 255, 255, 255}),
            place + "k takes too many bytes (expected at most 5, got more)");
  EXPECT_EQ(error({6, 255, 255, 255, 255, 15}),
            place + "k out of range (expected at most 10, got 2147483647)");
  EXPECT_EQ(error({6, 20, 1}), place + "wrong length for k = 10 (expected 43 bytes, got 3)");
}

TEST(TopKCodecTest, MalformedIndicesAreRefused) {
  std::vector<std::byte> payload = TopK(0.2, CodecId::kFp8E5m2, Gauss(50, 3));
  ASSERT_EQ(Error(payload, 50), "");
  for (std::byte& byte : std::span(payload).subspan(3 + 10)) byte = std::byte{0};
  EXPECT_EQ(Error(payload, 50), "topk payload of 50 values: indices: too few (expected 10, got 0)");
}

TEST(TopKCodecTest, APayloadMayHaveNoEntries) {
  const ByteChain payload(Bytes({6, 0, 1}));
  ASSERT_EQ(CheckPayload(payload, 5).status(), absl::OkStatus());
  EXPECT_EQ(Decoded(payload, 5), std::vector<float>(5, 0.0f));
}

TEST(RandomKCodecTest, EqualSharedKeysGiveEqualIndices) {
  const CodecSpec spec = {.id = CodecId::kRandomK, .density = 0.1};
  const auto codec = MakeCodec(spec).value();
  const auto indices = [&](const RandomKeys& keys, uint32_t seed) {
    std::vector<std::byte> bytes(codec->MaxPayloadBytes(500));
    bytes.resize(codec->Encode(Gauss(500, seed), keys, bytes));
    EXPECT_EQ(bytes.size(), 1u + 8 + 1 + 1 + 50 * 4);
    std::vector<uint32_t> indices_sent;
    ForEachPayloadEntry(CheckPayload(ByteChain(bytes), 500).value(), [&](auto some, auto) {
      indices_sent.insert(indices_sent.end(), some.begin(), some.end());
    });
    return indices_sent;
  };
  const auto first = indices({.shared = 1, .per_worker = 2}, 1);
  EXPECT_EQ(first.size(), 50u);
  EXPECT_EQ(indices({.shared = 1, .per_worker = 3}, 2), first);
  EXPECT_NE(indices({.shared = 4, .per_worker = 2}, 1), first);
}

TEST(RandomKCodecTest, AnUnbiasedCodecIsRightInTheMean) {
  const CodecSpec spec = {.id = CodecId::kRandomK, .density = 0.25, .unbiased = true};
  const auto codec = MakeCodec(spec).value();
  const std::vector<float> values = Gauss(40, 5);
  std::vector<float> mean(40, 0.0f);
  constexpr int kSteps = 20'000;
  for (uint64_t step = 0; step < kSteps; ++step) {
    std::vector<std::byte> bytes(codec->MaxPayloadBytes(40));
    bytes.resize(codec->Encode(values, {.shared = kernels::MixBits(step)}, bytes));
    DecodePayloadAdd(EncodedPayload(ByteChain(bytes), 40), 1.0f / kSteps, mean);
  }
  for (size_t i = 0; i < 40; ++i) EXPECT_NEAR(mean[i], values[i], 0.1) << i;
}

TEST(TopKCodecTest, AddingChangesOnlyTheEntries) {
  const std::vector<float> values = {1, 9, 2, 8};
  std::vector<float> sum = {100, 100, 100, 100};
  DecodePayloadAdd(CheckPayload(ByteChain(TopK(0.5, CodecId::kFp32, values)), 4).value(), 0.5f,
                   sum);
  EXPECT_EQ(sum, (std::vector<float>{100, 104.5f, 100, 104}));
}

}  // namespace
}  // namespace thinwire
