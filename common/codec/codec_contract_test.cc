// The contract of every codec: each test runs for every row of AllCodecSpecs().
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using Limits = std::numeric_limits<float>;

class CodecContract : public testing::TestWithParam<CodecSpec> {
 protected:
  const std::unique_ptr<const Codec> codec_ = MakeCodec(GetParam()).value();
  // The codec of the payload's values: the tested codec or, if the tested codec is sparse, the
  // dense codec of the sent values.
  const CodecId values_ = IsDense(codec_->id()) ? codec_->id() : GetParam().values;

  CheckedPayload Payload(std::span<const float> values) const {
    return CheckPayload(ByteChain(Encoded(*codec_, values)), values.size()).value();
  }

  void ExpectRoundTrip(const std::vector<float>& values) const {
    const ByteChain bytes(Encoded(*codec_, values));
    const auto payload = CheckPayload(bytes, values.size());
    ASSERT_TRUE(payload.ok()) << payload.status();
    ASSERT_EQ(payload->count(), values.size());
    ASSERT_EQ(payload->bytes(), bytes);
    ASSERT_EQ(EncodedPayload(bytes, values.size()), *payload);
    // topk sends a dense payload if a sparse payload would not be smaller.
    ASSERT_TRUE(payload->codec() == codec_->id() || payload->codec() == values_);
    ASSERT_TRUE(PayloadIsFinite(*payload));
    const std::vector<float> decoded = Decoded(*payload);
    if (codec_->lossless()) {
      ASSERT_EQ(decoded, values);
    }
    if (HasFixedValues(GetParam())) {
      // A decoded value is representable exactly in the codec's number format, so a second round
      // trip does not change it.
      ASSERT_EQ(Decoded(Payload(decoded)), decoded);
    }
    for (size_t i = 0; i < values.size(); ++i) ASSERT_TRUE(std::isfinite(decoded[i])) << i;
  }

  // Expects that every decoding function decodes the payload BYTES to the values READ.
  void ExpectAllReadersAgree(const ByteChain& bytes, const std::vector<float>& read) const {
    const size_t count = read.size();
    const auto checked = CheckPayload(bytes, count);
    ASSERT_TRUE(checked.ok()) << checked.status();
    const CheckedPayload& payload = *checked;
    ASSERT_TRUE(PayloadIsFinite(payload));
    ASSERT_EQ(Decoded(payload), read);
    std::vector<float> scaled(count, 5.0f), sum(count, 0.0f), more(count, 0.25f);
    DecodePayloadScaled(payload, 1.0f, scaled);
    ASSERT_EQ(scaled, read);
    DecodePayloadAdd(payload, 1.0f, sum);
    ASSERT_EQ(sum, read);
    DecodePayloadScaled(payload, -0.3f, scaled);
    DecodePayloadAdd(payload, -0.3f, more);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(scaled[i], -0.3f * read[i]);
      ASSERT_EQ(more[i], 0.25f + scaled[i]);
    }
    std::vector<float> in_blocks;
    DecodePayloadInBlocks(payload, -0.3f, [&](size_t first, std::span<const float> values) {
      ASSERT_EQ(first, in_blocks.size());
      ASSERT_LE(values.size(), kDecodedBlock);
      in_blocks.insert(in_blocks.end(), values.begin(), values.end());
    });
    ASSERT_EQ(in_blocks, scaled);
  }
};

TEST_P(CodecContract, ArraysOfEveryLengthRoundTrip) {
  for (size_t count = 0; count < 140; ++count) ExpectRoundTrip(Gauss(count, count));
  for (const size_t count : {1000, 4095, 20'001}) ExpectRoundTrip(Gauss(count, count));
}

TEST_P(CodecContract, EqualTinyAndHugeValuesRoundTrip) {
  for (const float value : {0.0f, -0.0f, 1.0f, -0.37f, Limits::denorm_min(), Limits::min() / 3,
                            -Limits::min(), 65504.0f, 70000.0f, 1e30f, -Limits::max()}) {
    for (const size_t count : {1, 100, 333}) ExpectRoundTrip(std::vector<float>(count, value));
    std::vector<float> mixed = Gauss(333, 5);
    mixed[100] = value;
    ExpectRoundTrip(mixed);
  }
}

TEST_P(CodecContract, ValuesOfAllMagnitudesRoundTrip) {
  std::mt19937 random(6);
  std::vector<float> values(3000);
  for (float& value : values) {
    do {
      value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    } while (!std::isfinite(value));
  }
  ExpectRoundTrip(values);
}

TEST_P(CodecContract, APayloadInTwoPiecesDecodesLikeOneInOnePiece) {
  for (const size_t count : {1, 7, 41}) {
    const std::vector<std::byte> bytes = Encoded(*codec_, Laplace(count, 8));
    const std::vector<float> read = Decoded(ByteChain(bytes), count);
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      ByteChain payload;
      payload.Append(std::span(bytes).first(cut), nullptr);
      payload.Append(std::span(bytes).subspan(cut), nullptr);
      ExpectAllReadersAgree(payload, read);
    }
  }
}

TEST_P(CodecContract, APayloadInManyPiecesDecodesLikeOneInOnePiece) {
  std::mt19937 random(9);
  for (const size_t largest_piece : {1, 2, 3, 7, 100, 5000}) {
    const size_t count = 2000;
    const std::vector<std::byte> bytes = Encoded(*codec_, StudentT3(count, 10));
    ByteChain payload;
    for (size_t at = 0; at < bytes.size();) {
      const size_t length = std::min(bytes.size() - at, 1 + random() % largest_piece);
      payload.Append(std::span(bytes).subspan(at, length), nullptr);
      at += length;
    }
    ExpectAllReadersAgree(payload, Decoded(ByteChain(bytes), count));
  }
}

TEST_P(CodecContract, EncodersStayWithinMaxPayloadBytes) {
  for (const size_t count : {0, 1, 2, 63, 64, 65, 1000, 5001}) {
    const std::vector<float> values = Gauss(count, 11);
    const size_t largest = codec_->MaxPayloadBytes(count);
    std::vector<std::byte> room(largest + 64, std::byte{0xAB});
    const size_t length = codec_->Encode(values, RandomKeys(), std::span(room).first(largest));
    ASSERT_LE(length, largest);
    std::vector<float> residual(count);
    CodecMemory memory;
    ASSERT_EQ(codec_->EncodeFeedback(values, residual, RandomKeys(), memory,
                                     std::span(room).first(largest)),
              length);
    for (size_t i = largest; i < room.size(); ++i) ASSERT_EQ(room[i], std::byte{0xAB});
  }
}

TEST_P(CodecContract, FeedbackEncodesTheSumAndKeepsTheEncodingError) {
  for (const size_t count : {1, 66, 30'000}) {
    const std::vector<float> gradient = Gauss(count, 12), before = Laplace(count, 13);
    std::vector<float> sum = gradient, residual = before;
    for (size_t i = 0; i < count; ++i) sum[i] += before[i];
    std::vector<std::byte> got(codec_->MaxPayloadBytes(count));
    CodecMemory memory;
    got.resize(codec_->EncodeFeedback(gradient, residual, RandomKeys(), memory, got));
    ASSERT_EQ(got, Encoded(*codec_, sum));
    const std::vector<float> decoded = Decoded(ByteChain(got), count);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(residual[i], sum[i] - decoded[i]) << i;
  }
}

TEST_P(CodecContract, APayloadOfAnotherLengthOrCountIsRefused) {
  for (const size_t count : {1, 2, 10, 300}) {
    const std::vector<std::byte> bytes = Encoded(*codec_, Gauss(count, 14));
    for (size_t length = 0; length < bytes.size(); ++length) {
      const ByteChain shorter{std::span(bytes).first(length), nullptr};
      ASSERT_FALSE(CheckPayload(shorter, count).ok()) << length << " of " << bytes.size();
    }
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    ASSERT_FALSE(CheckPayload(ByteChain(longer), count).ok());
    ASSERT_FALSE(CheckPayload(ByteChain(bytes), SIZE_MAX / 8).ok());
    // Payloads of COUNT and COUNT + 1 values can have equal bytes if they are sparse or if several
    // codes share a byte.
    const bool sparse = PayloadIsSparse(CheckPayload(ByteChain(bytes), count).value());
    if (!sparse && HasFixedValues(GetParam())) {
      ASSERT_FALSE(CheckPayload(ByteChain(bytes), count - 1).ok());
      ASSERT_FALSE(CheckPayload(ByteChain(bytes), count + 1).ok());
    }
  }
}

TEST_P(CodecContract, EqualKeysGiveEqualBytes) {
  const std::vector<float> values = Laplace(3000, 21);
  const RandomKeys keys = {.shared = 5, .per_worker = 6};
  std::vector<std::byte> first(codec_->MaxPayloadBytes(values.size()), std::byte{1});
  std::vector<std::byte> again(first.size(), std::byte{2});
  first.resize(codec_->Encode(values, keys, first));
  again.resize(codec_->Encode(values, keys, again));
  ASSERT_EQ(first, again);
  again.resize(codec_->MaxPayloadBytes(values.size()));
  again.resize(codec_->Encode(values, {.shared = 7, .per_worker = 8}, again));
  const bool random = codec_->id() == CodecId::kRandomK || values_ == CodecId::kQsgd;
  ASSERT_EQ(first != again, random);
}

INSTANTIATE_TEST_SUITE_P(All, CodecContract, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& info) { return SpecName(info.param); });

}  // namespace
}  // namespace thinwire
