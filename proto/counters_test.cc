#include "proto/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(CountersTest, EveryWorkerCounterIsVisitedOnce) {
  std::map<std::string, uint64_t> visited;
  WorkerCounters counters;
  counters.set_late_pushes(3);
  ForEachCounter(counters,
                 [&](const std::string& name, uint64_t value) { visited.emplace(name, value); });
  EXPECT_EQ(visited.size(), WorkerCounters::descriptor()->field_count());
  EXPECT_EQ(visited["late_pushes"], 3);
}

TEST(CountersTest, FieldsOfOtherTypesAreNotCounters) {
  ShardState shard;
  shard.set_shard(7);
  shard.set_open(true);
  shard.set_frontier(9);
  std::vector<std::pair<std::string, uint64_t>> visited;
  ForEachCounter(
      shard, [&](const std::string& name, uint64_t value) { visited.emplace_back(name, value); });
  EXPECT_THAT(visited, ElementsAre(Pair("frontier", 9), Pair("predecessor_next", 0),
                                   Pair("largest_next", 0)));
}

TEST(CountersTest, CountersAreAddedFieldByField) {
  WorkerCounters sum;
  sum.set_sent_bytes(uint64_t{1} << 40);
  sum.set_reconnects(1);
  WorkerCounters more;
  more.set_sent_bytes(5);
  more.set_late_pushes(2);
  AddCounters(more, sum);
  EXPECT_EQ(sum.sent_bytes(), (uint64_t{1} << 40) + 5);
  EXPECT_EQ(sum.reconnects(), 1);
  EXPECT_EQ(sum.late_pushes(), 2);
}

TEST(CountersTest, AnArrayCountsByFieldNumber) {
  CounterArray array(*WorkerCounters::descriptor());
  array.Add(WorkerCounters::kPushBytesRawFieldNumber, 400);
  array.Add(WorkerCounters::kOverflowedStepsFieldNumber);
  array.Add(WorkerCounters::kOverflowedStepsFieldNumber);
  WorkerCounters counters;
  counters.set_reconnects(9);
  array.CopyTo(counters);
  EXPECT_EQ(counters.push_bytes_raw(), 400);
  EXPECT_EQ(counters.overflowed_steps(), 2);
  EXPECT_EQ(counters.reconnects(), 0);
}

}  // namespace
}  // namespace thinwire
