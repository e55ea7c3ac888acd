#include "common/model/value_hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <span>
#include <vector>

namespace thinwire {
namespace {

TEST(ValueHashTest, EveryBitOfEveryValueChangesTheHash) {
  for (size_t n = 1; n < 12; ++n) {
    std::vector<float> values(n, 0.5f);
    std::set<uint64_t> hashes = {HashValues(values)};
    for (float& value : values) {
      for (int bit = 0; bit < 32; ++bit) {
        const float before = value;
        value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ (1u << bit));
        EXPECT_TRUE(hashes.insert(HashValues(values)).second) << n << " values, bit " << bit;
        value = before;
      }
    }
  }
}

TEST(ValueHashTest, OrderAndLengthChangeTheHash) {
  EXPECT_NE(HashValues(std::vector<float>{1, 2, 3, 4}), HashValues(std::vector<float>{4, 3, 2, 1}));
  EXPECT_NE(HashValues(std::vector<float>{1, 0, 0, 0, 2}),
            HashValues(std::vector<float>{2, 0, 0, 0, 1}));
  EXPECT_NE(HashValues(std::vector<float>{0}), HashValues(std::vector<float>{0, 0}));
}

// The hash must not change between versions, because programs of different versions compare hashes.
TEST(ValueHashTest, TheHashHasRecordedValues) {
  EXPECT_EQ(HashValues(std::vector<float>{1, -2, 3, -4, 5}), 10298992152621653155u);
}

TEST(ValueHashTest, AModelsHashDependsOnTheOrderOfItsTensors) {
  const std::vector<float> a = {1, 2};
  const std::vector<float> b = {3};
  const std::vector<std::span<const float>> ab = {a, b};
  const std::vector<std::span<const float>> ba = {b, a};
  EXPECT_NE(HashTensors(ab), HashTensors(ba));
  EXPECT_NE(HashTensors({}), 0u);
}

}  // namespace
}  // namespace thinwire
