#include "cli/server_totals.h"

#include <gtest/gtest.h>

#include <vector>

namespace thinwire {
namespace {

TEST(ServerTotalsTest, TheServersCountsAreAdded) {
  std::vector<StatusReply> replies(2);
  replies[0].set_accepted_pushes(5);
  replies[1].set_accepted_pushes(6);
  replies[1].set_late_pushes(2);
  (*replies[0].mutable_staleness())[0] = 4;
  (*replies[0].mutable_staleness())[1] = 1;
  (*replies[1].mutable_staleness())[1] = 2;
  (*replies[1].mutable_staleness())[5] = 1;
  const ServerTotals totals = TotalsOf(replies);
  EXPECT_EQ(totals.accepted_pushes, 11);
  EXPECT_EQ(totals.late_pushes, 2);
  EXPECT_EQ(totals.staleness, (std::map<uint64_t, uint64_t>{{0, 4}, {1, 3}, {5, 1}}));
  EXPECT_DOUBLE_EQ(totals.mean_staleness(), 1.0);
  EXPECT_EQ(totals.max_staleness(), 5);
}

TEST(ServerTotalsTest, NothingIsZero) {
  EXPECT_EQ(TotalsOf({}).mean_staleness(), 0);
  EXPECT_EQ(TotalsOf({}).max_staleness(), 0);
}

}  // namespace
}  // namespace thinwire
