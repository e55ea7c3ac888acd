#include "common/codec/sparse/drawn_indices.h"

#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(DrawnIndicesTest, IndicesAscendBelowTheUniverse) {
  for (size_t universe = 0; universe < 60; ++universe) {
    for (size_t count = 0; count <= universe; ++count) {
      std::vector<uint32_t> indices(count);
      ASSERT_EQ(DrawnIndices(count * 977 + universe, count, universe).Next(indices), count);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_LT(indices[i], universe);
        if (i > 0) {
          ASSERT_GT(indices[i], indices[i - 1]);
        }
      }
    }
  }
  std::vector<uint32_t> last(1);
  DrawnIndices(3, 1, UINT32_MAX).Next(last);
  EXPECT_LT(last[0], UINT32_MAX);
}

TEST(DrawnIndicesTest, EveryIndexIsEquallyLikely) {
  std::vector<int> drawn(30);
  constexpr int kDraws = 30'000;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    std::vector<uint32_t> indices(6);
    DrawnIndices(kernels::MixBits(draw), 6, 30).Next(indices);
    for (const uint32_t index : indices) ++drawn[index];
  }
  for (const int times : drawn) EXPECT_NEAR(times, kDraws / 5, 300);
}

}  // namespace
}  // namespace thinwire
