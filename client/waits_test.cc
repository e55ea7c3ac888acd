#include "client/waits.h"

#include <gtest/gtest.h>

namespace thinwire::client {
namespace {

TEST(WaitsTest, ShardsThatWaitForTheSameAreNamedTogether) {
  Waits waits;
  EXPECT_EQ(waits.Text(), "");
  for (uint32_t s : {0, 1, 2, 5}) {
    waits.Add({.shard = ShardId{s}, .step = Step{41}, .workers = {WorkerId{3}}});
  }
  waits.Add({.shard = ShardId{4}, .step = Step{41}, .workers = {WorkerId{1}, WorkerId{3}}});
  EXPECT_EQ(waits.Text(),
            "step 41: waits for worker 3 (shards 0-2, 5); "
            "step 41: waits for workers 1, 3 (shard 4)");
}

TEST(WaitsTest, AShutShardTellsWhatItWaitsFor) {
  Waits waits;
  waits.Add({.shard = ShardId{0}, .live = 1, .wanted = 2});
  waits.Add({.shard = ShardId{1}, .unseeded = true, .live = 1, .wanted = 2});
  EXPECT_EQ(waits.Text(),
            "step 0: waits for first values (shard 1); "
            "step 0: waits for workers, 1 of 2 are there (shard 0)");
}

TEST(WaitsTest, AnAnswerClearsItsShard) {
  Waits waits;
  waits.Add({.shard = ShardId{0}, .step = Step{1}, .workers = {WorkerId{3}}});
  EXPECT_FALSE(waits.Clear(ShardId{7}));
  EXPECT_TRUE(waits.Clear(ShardId{0}));
  EXPECT_EQ(waits.Text(), "");
}

}  // namespace
}  // namespace thinwire::client
