#include "client/shard_ranges.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire::client {
namespace {

std::string Ranges(std::vector<uint32_t> numbers) {
  std::vector<ShardId> shards;
  for (uint32_t n : numbers) shards.push_back(ShardId{n});
  return ShardRanges(shards);
}

TEST(ShardRangesTest, RunsAreJoinedAndGapsKept) {
  EXPECT_EQ(Ranges({}), "no shard");
  EXPECT_EQ(Ranges({3}), "shard 3");
  EXPECT_EQ(Ranges({3, 4}), "shards 3-4");
  EXPECT_EQ(Ranges({0, 3, 4, 5, 9}), "shards 0, 3-5, 9");
}

}  // namespace
}  // namespace thinwire::client
