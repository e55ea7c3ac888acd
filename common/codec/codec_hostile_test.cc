// What a server relies on when a payload comes from anybody: whatever its bytes are, it is refused,
// or what it decodes to is within the limits that it is said to be within.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using Limits = std::numeric_limits<float>;

class HostilePayloadOfEachCodec : public testing::TestWithParam<CodecSpec> {
 protected:
  const std::unique_ptr<const Codec> codec_ = MakeCodec(GetParam()).value();
  // The codec that the values themselves go through.
  const CodecId values_ = IsDense(codec_->id()) ? codec_->id() : GetParam().values;

  ByteChain Payload(std::span<const float> values) const {
    return ByteChain(Encoded(*codec_, values));
  }

  // What PAYLOAD is said to be within, its values READ are; and where no table is asked in their
  // stead, it is said of all limits that they are within.
  void ExpectLimitsHold(const ByteChain& payload, std::span<const float> read) const {
    for (const float limit : {0.0f, 1e-3f, 1.0f, 10.0f, 1e6f, Limits::max()}) {
      const bool within =
          std::ranges::all_of(read, [&](float value) { return std::abs(value) <= limit; });
      const bool said = PayloadIsWithin(payload, read.size(), limit);
      ASSERT_TRUE(said == within || (!said && !HasFixedValues(GetParam()))) << limit;
    }
    ASSERT_EQ(PayloadIsFinite(payload, read.size()),
              PayloadIsWithin(payload, read.size(), Limits::max()));
  }
};

// Damaged bytes are refused, or read as some other values within the arrays (a sanitizer watches).
TEST_P(HostilePayloadOfEachCodec, DamagedPayloadsAreRefusedOrRead) {
  std::mt19937 random(15);
  const size_t count = 57;
  const std::vector<std::byte> bytes = Encoded(*codec_, Gauss(count, 16));
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int i = 0; i <= round % 3; ++i) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    const ByteChain payload(damaged);
    if (!CheckPayload(payload, count).ok()) continue;
    std::vector<float> sum(count, 0.0f);
    DecodePayloadAdd(payload, 1.0f, sum);
    ExpectLimitsHold(payload, sum);
  }
}

// A peer that writes what no encoder does: NaN, infinity and huge numbers anywhere among the first
// bytes, where a table is, and where the values of a sparse payload are.
TEST_P(HostilePayloadOfEachCodec, HostileNumbersNeverPassForSmallerOnes) {
  const size_t count = 57;
  const std::vector<std::byte> bytes = Encoded(*codec_, Gauss(count, 19));
  for (const float number : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(),
                             -Limits::infinity(), Limits::max(), -1e30f, 2e3f}) {
    for (size_t at = 1; at + sizeof(number) <= std::min<size_t>(bytes.size(), 600); ++at) {
      std::vector<std::byte> hostile = bytes;
      std::memcpy(hostile.data() + at, &number, sizeof(number));
      const ByteChain payload(hostile);
      if (!CheckPayload(payload, count).ok()) continue;
      ExpectLimitsHold(payload, Decoded(payload, count));
    }
  }
}

// What is not finite is the caller's to keep away, but it must not reach beyond the arrays.
TEST_P(HostilePayloadOfEachCodec, ValuesThatAreNotFiniteMakeAPayload) {
  std::vector<float> values = Gauss(100, 22);
  for (const float value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    values[37] = value;
    const ByteChain payload = Payload(values);
    ASSERT_TRUE(CheckPayload(payload, values.size()).ok());
    ExpectLimitsHold(payload, Decoded(payload, values.size()));
    ASSERT_TRUE(CheckPayload(Payload(std::vector<float>(9, value)), 9).ok());
  }
}

TEST_P(HostilePayloadOfEachCodec, OneNanIsFoundWhereverItIs) {
  if (!HasFixedValues(GetParam()) || codec_->id() == CodecId::kRandomK) return;
  for (size_t at = 0; at < 75; ++at) {
    std::vector<float> values = Gauss(75, 17);
    values[at] = Limits::quiet_NaN();
    const ByteChain payload = Payload(values);
    ASSERT_TRUE(CheckPayload(payload, values.size()).ok());
    ASSERT_FALSE(PayloadIsFinite(payload, values.size())) << at;
  }
}

// The codecs of 16 and 32 bits carry an infinity. The fp8 encoders saturate it; e5m2 has a code for
// one that only another encoder would write.
TEST_P(HostilePayloadOfEachCodec, OneInfinityIsFoundWhereverItIs) {
  if (!HasFixedValues(GetParam()) || codec_->id() == CodecId::kRandomK) return;
  for (size_t at = 0; at < 75; ++at) {
    std::vector<float> values(75, 0.0f);
    values[at] = -Limits::infinity();
    std::vector<std::byte> bytes = Encoded(*codec_, values);
    if (values_ == CodecId::kFp8E5m2) {
      ASSERT_TRUE(PayloadIsFinite(ByteChain(bytes), values.size()));
      const auto largest = std::ranges::find(bytes, std::byte{0xFB});
      ASSERT_NE(largest, bytes.end());
      *largest = std::byte{0xFC};
    }
    const bool saturated = values_ == CodecId::kFp8E4m3;
    ASSERT_EQ(PayloadIsFinite(ByteChain(bytes), values.size()), saturated) << at;
  }
}

TEST_P(HostilePayloadOfEachCodec, TheLimitIsThatOfTheDecodedMagnitudes) {
  for (const float scale : {1e-6f, 1.0f, 1e3f}) {
    std::vector<float> values = Gauss(75, 18);
    for (float& value : values) value *= scale;
    const ByteChain payload = Payload(values);
    const std::vector<float> decoded = Decoded(payload, values.size());
    float largest = 0;
    for (const float value : decoded) largest = std::max(largest, std::abs(value));
    if (HasFixedValues(GetParam())) {
      ASSERT_TRUE(PayloadIsWithin(payload, values.size(), largest));
    }
    if (values_ != CodecId::kTwoBit) {
      ASSERT_TRUE(PayloadIsWithin(payload, values.size(), 2 * largest));
    }
    ASSERT_TRUE(PayloadIsWithin(payload, values.size(), Limits::max()));
    if (largest == 0) continue;
    ASSERT_FALSE(PayloadIsWithin(payload, values.size(), std::nextafter(largest, 0.0f)));
    ASSERT_FALSE(PayloadIsWithin(payload, values.size(), 0.0f));
  }
}

// An entry that no value has is asked, too: it costs a table and not a shard to know.
TEST(HostilePayloadTest, AnEntryThatNoValueHasIsRefusedLikeTheOthers) {
  struct Unused {
    const char* codec;
    size_t at;  // of a table of equal entries the last is used, of onebit here the positive one
  };
  const std::vector<float> values(40, 0.25f);
  for (const Unused& unused : {Unused{"table_2", 1}, Unused{"lloyd_4", 1}, Unused{"onebit", 9}}) {
    const auto codec = MakeCodec(ParseCodec(unused.codec).value()).value();
    std::vector<std::byte> bytes = Encoded(*codec, values);
    ASSERT_TRUE(PayloadIsWithin(ByteChain(bytes), values.size(), 0.25f)) << unused.codec;
    const float huge = 1e30f, nan = Limits::quiet_NaN();
    std::memcpy(bytes.data() + unused.at, &huge, sizeof(huge));
    EXPECT_EQ(Decoded(ByteChain(bytes), values.size()), values) << unused.codec;
    EXPECT_TRUE(PayloadIsFinite(ByteChain(bytes), values.size())) << unused.codec;
    EXPECT_FALSE(PayloadIsWithin(ByteChain(bytes), values.size(), 1e29f)) << unused.codec;
    std::memcpy(bytes.data() + unused.at, &nan, sizeof(nan));
    EXPECT_FALSE(PayloadIsFinite(ByteChain(bytes), values.size())) << unused.codec;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostilePayloadOfEachCodec, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& info) { return SpecName(info.param); });

}  // namespace
}  // namespace thinwire
