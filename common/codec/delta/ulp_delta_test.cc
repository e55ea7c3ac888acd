#include "common/codec/delta/ulp_delta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::HasSubstr;

using Floats = std::vector<float>;

std::vector<uint32_t> Bits(const Floats& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

std::vector<uint32_t> Different(const Floats& a, const Floats& b) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) indices.push_back(i);
  }
  return indices;
}

// Returns the bytes of PAYLOAD as a chain in which each byte is a separate piece.
ByteChain InPieces(const ByteChain& payload) {
  ByteChain pieces;
  for (size_t i = 0; i < payload.size(); ++i) pieces.Append(payload.Sub(i, 1));
  return pieces;
}

// Encodes the change from FROM to TO, expects that Apply reproduces TO, and returns the payload's
// length.
size_t RoundTrip(const Floats& from, const Floats& to) {
  const ByteChain payload = EncodeUlpDelta(from, to, Different(from, to));
  for (const ByteChain& form : {payload, InPieces(payload)}) {
    const auto delta = UlpDelta::Check(form, from.size());
    EXPECT_TRUE(delta.ok()) << delta.status();
    if (!delta.ok()) continue;
    Floats values = from;
    delta->Apply(values);
    EXPECT_EQ(Bits(values), Bits(to));
  }
  return payload.size();
}

Floats Draw(size_t count, float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(UlpDeltaTest, EveryValueCanChangeToEveryOther) {
  using Float = std::numeric_limits<float>;
  const Floats all = {0.0f,
                      -0.0f,
                      1.0f,
                      -1.0f,
                      Float::max(),
                      -Float::max(),
                      Float::min(),
                      Float::denorm_min(),
                      -Float::denorm_min(),
                      Float::infinity(),
                      -Float::infinity(),
                      Float::quiet_NaN(),
                      -Float::quiet_NaN(),
                      std::nextafter(1.0f, 2.0f),
                      std::bit_cast<float>(0x7FFFFFFFu),
                      std::bit_cast<float>(0xFFFFFFFFu)};
  for (const float from : all) {
    for (const float to : all) RoundTrip({from}, {to});
  }
}

TEST(UlpDeltaTest, AnyPartOfTheValuesCanChange) {
  for (const size_t count : {1, 2, 63, 64, 65, 5000}) {
    const Floats from = Draw(count, 1, 1);
    for (const double part : {0.0, 0.01, 0.3, 1.0}) {
      std::mt19937 random(7);
      Floats to = from;
      for (float& value : to) {
        if (static_cast<double>(random() % 1000) < 1000 * part) value *= 1.001f;
      }
      RoundTrip(from, to);
    }
    RoundTrip(from, Draw(count, 1000, 2));
  }
  EXPECT_EQ(RoundTrip({}, {}), 5u);
}

TEST(UlpDeltaTest, SmallChangesTakeFewBytes) {
  const Floats from = Draw(100000, 0.05f, 3);
  const Floats changes = Draw(100000, 1e-4f, 4);
  Floats to = from;
  for (size_t i = 0; i < to.size(); ++i) to[i] += changes[i];
  // The changes are about 500 times smaller than the values. Therefore an entry, a difference with
  // its index, takes less than 24 bits, whereas a value in fp32 takes 32 bits.
  EXPECT_LT(RoundTrip(from, to), 100000u * 3);
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::nextafter(from[i], 1.0f);
  EXPECT_EQ(RoundTrip(from, to), 5 + 100000u / 2)
      << "here an index takes 2 bits, and a difference 2";
}

// 3 of 8 values change: 1.0 to the next float above it, 2.0 to the next below it, and 0.0 to -0.0.
// The differences, counted in floats, are 1, -1 and -1. The format maps the difference 1 to the
// unsigned number 1, and -1 to 0. It writes these numbers in exponential Golomb code of order 0, in
// which 1 is 010 and 0 is 1, with the lowest bit first.
TEST(UlpDeltaTest, ThePayloadMatchesItsDocumentation) {
  const Floats from = {1, 5, 5, 2, 5, 5, 0, 5};
  Floats to = from;
  to[0] = std::nextafter(1.0f, 2.0f);
  to[3] = std::nextafter(2.0f, 1.0f);
  to[6] = -0.0f;
  const std::vector<std::byte> bytes = EncodeUlpDelta(from, to, Different(from, to)).ToVector();
  ASSERT_GE(bytes.size(), 6u);
  const std::vector<std::byte> head(bytes.begin(), bytes.begin() + 5);
  EXPECT_EQ(head, (std::vector<std::byte>{std::byte{3}, {}, {}, {}, {}}));
  EXPECT_EQ(bytes.back(), std::byte{0b11010});
}

std::string Error(std::vector<std::byte> bytes, size_t count) {
  return std::string(UlpDelta::Check(ByteChain(std::move(bytes)), count).status().message());
}

TEST(UlpDeltaTest, MalformedPayloadsAreRefused) {
  const Floats from = Draw(1000, 1, 5);
  Floats to = from;
  for (size_t i = 0; i < to.size(); i += 10) to[i] *= 1.01f;
  const std::vector<std::byte> good = EncodeUlpDelta(from, to, Different(from, to)).ToVector();
  EXPECT_EQ(Error(good, 1000), "");
  EXPECT_EQ(Error({}, 1000), "ULP delta of 1000 values: head too short (expected 5 bytes, got 0)");
  EXPECT_EQ(Error(good, 99),
            "ULP delta of 99 values: k out of range (expected at most 99, got 100)");
  std::vector<std::byte> bad = good;
  bad[4] = std::byte{32};
  EXPECT_EQ(Error(bad, 1000),
            "ULP delta of 1000 values: order out of range (expected at most 31, got 32)");
  bad.assign(good.begin(), good.begin() + 6);
  EXPECT_THAT(Error(bad, 1000), HasSubstr("indices too short for k = 100"));
  bad.assign(good.begin(), good.end() - 2);
  EXPECT_THAT(Error(bad, 1000), HasSubstr("too few codes in"));
  bad = good;
  bad.push_back({});
  EXPECT_THAT(Error(bad, 1000), HasSubstr("bytes after the last of 100 codes"));
  bad = good;
  bad[5] ^= std::byte{0xFF};
  bad[60] ^= std::byte{0xFF};
  bad[61] ^= std::byte{0xFF};
  EXPECT_NE(Error(bad, 1000), "");
}

// Every payload that Check accepts can be applied. A sanitizer detects accesses out of bounds.
TEST(UlpDeltaTest, DamagedPayloadsAreRefusedOrApplied) {
  const Floats from = Draw(300, 1, 6);
  Floats to = from;
  for (size_t i = 0; i < to.size(); i += 7) to[i] += 1;
  const std::vector<std::byte> good = EncodeUlpDelta(from, to, Different(from, to)).ToVector();
  std::mt19937 random(8);
  int passed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = good;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1u << random() % 8);
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 8));
    const auto delta = UlpDelta::Check(ByteChain(std::move(bytes)), from.size());
    if (!delta.ok()) continue;
    ++passed;
    Floats values = from;
    delta->Apply(values);
  }
  EXPECT_GT(passed, 100);
  EXPECT_LT(passed, 20000);
}

}  // namespace
}  // namespace thinwire
