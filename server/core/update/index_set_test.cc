#include "server/core/update/index_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace thinwire {
namespace {

std::vector<uint32_t> Indices(const IndexSet& set) {
  std::vector<uint32_t> all;
  set.ForEachBlock([&](std::span<const uint32_t> indices) {
    EXPECT_FALSE(indices.empty());
    EXPECT_LE(indices.size(), IndexSet::kBlock);
    all.insert(all.end(), indices.begin(), indices.end());
  });
  return all;
}

TEST(IndexSetTest, ListsInsertedIndicesInRisingOrder) {
  std::mt19937 random(1);
  for (const size_t universe : {1, 63, 64, 65, 5000}) {
    for (const size_t inserted : {1, 10, 2000}) {
      IndexSet set(universe);
      std::set<uint32_t> want;
      for (size_t i = 0; i < inserted; ++i) {
        const auto index = static_cast<uint32_t>(random() % universe);
        EXPECT_EQ(set.Insert(index), want.insert(index).second);
      }
      EXPECT_EQ(Indices(set), std::vector<uint32_t>(want.begin(), want.end()));
      for (uint32_t i = 0; i < universe; ++i) ASSERT_EQ(set.Has(i), want.contains(i));
    }
  }
}

TEST(IndexSetTest, ListsFullBlocksOnce) {
  IndexSet set(3 * IndexSet::kBlock);
  for (uint32_t i = 0; i < 2 * IndexSet::kBlock; ++i) set.Insert(i);
  EXPECT_EQ(Indices(set).size(), 2 * IndexSet::kBlock);
}

TEST(IndexSetTest, IsEmptyAfterClear) {
  IndexSet set(100);
  set.Insert(99);
  set.Clear();
  EXPECT_EQ(Indices(set), std::vector<uint32_t>());
  EXPECT_TRUE(set.Insert(99));
}

TEST(IndexSetTest, AllowsAnEmptyUniverse) { EXPECT_EQ(Indices(IndexSet(0)).size(), 0u); }

}  // namespace
}  // namespace thinwire
