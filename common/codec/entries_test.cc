#include "common/codec/entries.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>
#include <vector>

#include "common/codec/codec.h"

namespace thinwire {
namespace {

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

TEST(EntriesTest, WhatIsPutInPlaceIsThereBitByBit) {
  std::mt19937 bits(3);
  for (const size_t n : {1, 2, 100, 5000}) {
    for (const uint32_t every : {1, 2, 50, 1000000}) {
      std::vector<float> values(n), held(n, 7);
      std::vector<uint32_t> indices;
      for (uint32_t i = 0; i < n; ++i) {
        values[i] = static_cast<float>(bits()) * (bits() % 2 == 0 ? 1e-20f : -1e-44f);
        if (bits() % every == 0) indices.push_back(i);
      }
      const ByteChain payload = EncodeEntries(values, indices);
      EXPECT_EQ(payload.size(), EntriesPayloadBytes(indices.size(), n));
      ASSERT_TRUE(CheckPayload(payload, n).ok()) << CheckPayload(payload, n);
      ReplaceEntries(payload, held);
      size_t next = 0;
      for (uint32_t i = 0; i < n; ++i) {
        const bool sent = next < indices.size() && indices[next] == i;
        if (sent) ++next;
        EXPECT_EQ(Bits(held[i]), Bits(sent ? values[i] : 7.0f)) << n << " " << every << " " << i;
      }
    }
  }
}

TEST(EntriesTest, AMinusZeroIsPutInPlaceToo) {
  std::vector<float> held = {0.0f, 1};
  ReplaceEntries(EncodeEntries(std::vector<float>{-0.0f, 5}, std::vector<uint32_t>{0}), held);
  EXPECT_EQ(Bits(held[0]), Bits(-0.0f));
  EXPECT_EQ(held[1], 1);
}

TEST(EntriesTest, ADensePayloadReplacesEverything) {
  std::vector<float> values = {1, 2, 3}, held(3);
  std::vector<std::byte> bytes(1 + 3 * sizeof(float));
  const auto codec = MakeCodec({.id = CodecId::kFp32}).value();
  codec->Encode(values, Turn(), bytes);
  ReplaceEntries(ByteChain(std::move(bytes)), held);
  EXPECT_EQ(held, values);
}

}  // namespace
}  // namespace thinwire
