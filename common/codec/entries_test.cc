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

TEST(EntriesTest, WhatIsSentIsThereBitByBit) {
  std::mt19937 bits(3);
  for (const size_t n : {1, 2, 100, 5000}) {
    for (const uint32_t every : {1, 2, 50, 1000000}) {
      std::vector<float> values(n), held(n);
      std::vector<uint32_t> indices;
      for (uint32_t i = 0; i < n; ++i) {
        values[i] = static_cast<float>(bits()) * (bits() % 2 == 0 ? 1e-20f : -1e-44f);
        if (bits() % every == 0) indices.push_back(i);
      }
      const ByteChain payload = EncodeEntries(values, indices);
      ASSERT_TRUE(CheckPayload(payload, n).ok()) << CheckPayload(payload, n);
      DecodePayload(payload, held);
      size_t next = 0;
      for (uint32_t i = 0; i < n; ++i) {
        const bool sent = next < indices.size() && indices[next] == i;
        if (sent) ++next;
        EXPECT_EQ(Bits(held[i]), Bits(sent ? values[i] : 0.0f)) << n << " " << every << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace thinwire
