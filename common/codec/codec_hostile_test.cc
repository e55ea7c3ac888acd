// Tests with payloads of arbitrary bytes. CheckPayload must refuse such a payload, or
// PayloadIsWithin must be correct for it: all decoded values are within every limit that it
// confirms.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "common/memory/byte_chain.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

using Limits = std::numeric_limits<float>;

class HostilePayloadOfEachCodec : public testing::TestWithParam<CodecSpec> {
 protected:
  const std::unique_ptr<const Codec> codec_ = MakeCodec(GetParam()).value();
  // The codec of the payload's values: the tested codec or, if the tested codec is sparse, the
  // dense codec of the sent values.
  const CodecId values_ = IsDense(codec_->id()) ? codec_->id() : GetParam().values;

  CheckedPayload Payload(std::span<const float> values) const {
    return CheckPayload(ByteChain(Encoded(*codec_, values)), values.size()).value();
  }

  // Tests PayloadIsWithin with several limits. READ contains the values decoded from PAYLOAD. If
  // PayloadIsWithin returns true for a limit, all magnitudes in READ must be at most the limit. If
  // all magnitudes are at most the limit, PayloadIsWithin must return true, unless it tests the
  // entries of a table instead of the values.
  void ExpectLimitsHold(const CheckedPayload& payload, std::span<const float> read) const {
    for (const float limit : {0.0f, 1e-3f, 1.0f, 10.0f, 1e6f, Limits::max()}) {
      const bool within =
          std::ranges::all_of(read, [&](float value) { return std::abs(value) <= limit; });
      const bool confirmed = PayloadIsWithin(payload, limit);
      ASSERT_TRUE(confirmed == within || (!confirmed && !HasFixedValues(GetParam()))) << limit;
    }
    ASSERT_EQ(PayloadIsFinite(payload), PayloadIsWithin(payload, Limits::max()));
  }
};

// A damaged payload is refused, or decodes to other values without an access out of bounds. A
// sanitizer detects accesses out of bounds.
TEST_P(HostilePayloadOfEachCodec, DamagedPayloadsAreRefusedOrDecoded) {
  std::mt19937 random(15);
  const size_t count = 57;
  const std::vector<std::byte> bytes = Encoded(*codec_, Gauss(count, 16));
  int refused = 0, decoded = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int i = 0; i <= round % 3; ++i) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    const auto payload = CheckPayload(ByteChain(damaged), count);
    if (!payload.ok()) {
      ++refused;
      continue;
    }
    ++decoded;
    std::vector<float> sum(count, 0.0f);
    DecodePayloadAdd(*payload, 1.0f, sum);
    ExpectLimitsHold(*payload, sum);
  }
  // At least a few damaged payloads must be refused, such as payloads with an unknown codec id, and
  // at least a hundred must be decoded.
  EXPECT_GE(refused, 5);
  EXPECT_GE(decoded, 100);
}

// Overwrites four bytes at each offset in the first 600 bytes of a payload with a NaN, an infinity
// or a huge number. Such a number may become a table entry or a value of the payload.
TEST_P(HostilePayloadOfEachCodec, HostileNumbersNeverPassForSmallerOnes) {
  const size_t count = 570;  // so that the values in a sparse payload take more than four bytes
  const std::vector<std::byte> bytes = Encoded(*codec_, Gauss(count, 19));
  int decoded = 0;
  for (const float number : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(),
                             -Limits::infinity(), Limits::max(), -1e30f, 2e3f}) {
    for (size_t at = 1; at + sizeof(number) <= std::min<size_t>(bytes.size(), 600); ++at) {
      std::vector<std::byte> hostile = bytes;
      std::memcpy(hostile.data() + at, &number, sizeof(number));
      const auto payload = CheckPayload(ByteChain(hostile), count);
      if (!payload.ok()) continue;
      ++decoded;
      ExpectLimitsHold(*payload, Decoded(*payload));
    }
  }
  EXPECT_GE(decoded, 1);
}

// Encoders may get values that are not finite. They must not read or write beyond their arrays.
TEST_P(HostilePayloadOfEachCodec, ValuesThatAreNotFiniteGiveAPayload) {
  std::vector<float> values = Gauss(100, 22);
  for (const float value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
    values[37] = value;
    const CheckedPayload payload = Payload(values);
    ExpectLimitsHold(payload, Decoded(payload));
    ASSERT_EQ(Payload(std::vector<float>(9, value)).count(), 9u);
  }
}

TEST_P(HostilePayloadOfEachCodec, TheLimitAppliesToDecodedMagnitudes) {
  for (const float scale : {1e-6f, 1.0f, 1e3f}) {
    std::vector<float> values = Gauss(75, 18);
    for (float& value : values) value *= scale;
    const CheckedPayload payload = Payload(values);
    const std::vector<float> decoded = Decoded(payload);
    float largest = 0;
    for (const float value : decoded) largest = std::max(largest, std::abs(value));
    if (HasFixedValues(GetParam())) {
      ASSERT_TRUE(PayloadIsWithin(payload, largest));
    }
    if (values_ != CodecId::kTwoBit) {
      ASSERT_TRUE(PayloadIsWithin(payload, 2 * largest));
    }
    ASSERT_TRUE(PayloadIsWithin(payload, Limits::max()));
    if (largest > 0) {
      ASSERT_FALSE(PayloadIsWithin(payload, std::nextafter(largest, 0.0f)));
      ASSERT_FALSE(PayloadIsWithin(payload, 0.0f));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostilePayloadOfEachCodec, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& info) { return SpecName(info.param); });

// Returns the dense codecs, and topk with dense values: the codecs that send all values or the
// largest values, each in a number format.
std::vector<CodecSpec> NumberFormatSpecs() {
  std::vector<CodecSpec> specs;
  for (const CodecSpec& spec : AllCodecSpecs()) {
    if (HasFixedValues(spec) && spec.id != CodecId::kRandomK) specs.push_back(spec);
  }
  return specs;
}

class HostileNumberFormat : public HostilePayloadOfEachCodec {};

TEST_P(HostileNumberFormat, OneNanIsFoundAtEveryIndex) {
  for (size_t at = 0; at < 75; ++at) {
    std::vector<float> values = Gauss(75, 17);
    values[at] = Limits::quiet_NaN();
    ASSERT_FALSE(PayloadIsFinite(Payload(values))) << at;
  }
}

// The number formats of 16 and 32 bits represent infinity. The fp8 encoders replace an infinity by
// the largest finite value. fp8_e5m2 has a code for infinity, so a payload of another encoder may
// contain it.
TEST_P(HostileNumberFormat, OneInfinityIsFoundAtEveryIndex) {
  for (size_t at = 0; at < 75; ++at) {
    std::vector<float> values(75, 0.0f);
    values[at] = -Limits::infinity();
    std::vector<std::byte> bytes = Encoded(*codec_, values);
    if (values_ == CodecId::kFp8E5m2) {
      ASSERT_TRUE(PayloadIsFinite(CheckPayload(ByteChain(bytes), values.size()).value()));
      const auto largest = std::ranges::find(bytes, std::byte{0xFB});
      ASSERT_NE(largest, bytes.end());
      *largest = std::byte{0xFC};
    }
    const bool saturated = values_ == CodecId::kFp8E4m3;
    ASSERT_EQ(PayloadIsFinite(CheckPayload(ByteChain(bytes), values.size()).value()), saturated)
        << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HostileNumberFormat, testing::ValuesIn(NumberFormatSpecs()),
                         [](const auto& info) { return SpecName(info.param); });

// PayloadIsWithin tests all table entries instead of the values, including entries that no value
// uses.
TEST(HostilePayloadTest, ATableEntryThatNoValueUsesIsRefused) {
  struct Unused {
    const char* codec;
    // The offset of a table entry that no value uses. Encoders use the last of several equal
    // entries, and the onebit payload of this test has no negative value.
    size_t at;
  };
  const std::vector<float> values(40, 0.25f);
  for (const Unused& unused : {Unused{"table_2", 1}, Unused{"lloyd_4", 1}, Unused{"onebit", 9}}) {
    const auto codec = MakeCodec(ParseCodec(unused.codec).value()).value();
    std::vector<std::byte> bytes = Encoded(*codec, values);
    const auto check = [&] { return CheckPayload(ByteChain(bytes), values.size()).value(); };
    ASSERT_TRUE(PayloadIsWithin(check(), 0.25f)) << unused.codec;
    const float huge = 1e30f, nan = Limits::quiet_NaN();
    std::memcpy(bytes.data() + unused.at, &huge, sizeof(huge));
    EXPECT_EQ(Decoded(check()), values) << unused.codec;
    EXPECT_TRUE(PayloadIsFinite(check())) << unused.codec;
    EXPECT_FALSE(PayloadIsWithin(check(), 1e29f)) << unused.codec;
    std::memcpy(bytes.data() + unused.at, &nan, sizeof(nan));
    EXPECT_FALSE(PayloadIsFinite(check())) << unused.codec;
  }
}

}  // namespace
}  // namespace thinwire
