#include "cli/server_totals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Not;

TEST(ServerTotalsTest, CountersAndStalenessAreSummedOverTheServers) {
  std::vector<StatusReply> replies(2);
  replies[0].set_accepted_pushes(5);
  replies[0].set_generation(1);
  replies[0].set_epoch(12345);
  replies[1].set_accepted_pushes(6);
  replies[1].set_late_pushes(2);
  (*replies[0].mutable_staleness())[0] = 4;
  (*replies[0].mutable_staleness())[1] = 1;
  (*replies[1].mutable_staleness())[1] = 2;
  (*replies[1].mutable_staleness())[5] = 1;
  const ServerTotals totals = TotalsOf(replies);
  EXPECT_EQ(totals.counters.accepted_pushes(), 11);
  EXPECT_EQ(totals.counters.late_pushes(), 2);
  EXPECT_EQ(totals.counters.generation(), 0);
  EXPECT_EQ(totals.counters.epoch(), 0);
  EXPECT_EQ(totals.staleness, (std::map<uint64_t, uint64_t>{{0, 4}, {1, 3}, {5, 1}}));
  EXPECT_DOUBLE_EQ(totals.mean_staleness(), 1.0);
  EXPECT_EQ(totals.max_staleness(), 5);
}

TEST(ServerTotalsTest, TheFieldsThatIdentifyAServerAreNoCounters) {
  std::vector<std::string> names;
  TotalsOf({}).ForEachCounter([&](const std::string& name, uint64_t) { names.push_back(name); });
  EXPECT_THAT(names, Contains("accepted_pushes"));
  EXPECT_THAT(names, Contains("split_steps"));
  EXPECT_THAT(names, Not(AnyOf(Contains("generation"), Contains("epoch"))));
}

TEST(ServerTotalsTest, TotalsOfNoServersAreZero) {
  EXPECT_EQ(TotalsOf({}).mean_staleness(), 0);
  EXPECT_EQ(TotalsOf({}).max_staleness(), 0);
}

}  // namespace
}  // namespace thinwire
