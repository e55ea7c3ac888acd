#include "proto/deal_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

Deal DealOf(uint64_t step, const std::vector<uint32_t>& members,
            const std::vector<uint32_t>& departed = {}) {
  Deal deal;
  deal.set_number(1);
  deal.set_step(step);
  for (const uint32_t worker : members) deal.add_members(worker);
  for (const uint32_t worker : departed) deal.add_departed()->set_worker(worker);
  return deal;
}

std::string Error(const Deal& deal) { return std::string(CheckDeal(deal, 4, 5).message()); }

TEST(DealCheckTest, AGoodDealIsAccepted) {
  EXPECT_TRUE(CheckDeal(DealOf(5, {0, 3}, {1}), 4, 5).ok());
  EXPECT_TRUE(CheckDeal(DealOf(9, {2}, {0, 1, 3}), 4, 5).ok());
}

TEST(DealCheckTest, AnInvalidDealIsRefusedWithTheCause) {
  EXPECT_EQ(Error(DealOf(4, {0})),
            "deal: step: out of range (expected 5 to 4611686018427387904, got 4)");
  Deal unnumbered = DealOf(5, {0});
  unnumbered.clear_number();
  EXPECT_EQ(Error(unnumbered), "deal: number: missing (expected at least 1, got 0)");
  Deal first = DealOf(5, {0}, {1});
  first.set_epoch(2);
  EXPECT_EQ(Error(first), "deal: departed: not valid with an epoch (expected none, got 1)");
  EXPECT_EQ(Error(DealOf(5, {})), "deal: members: missing (expected at least 1, got 0)");
  EXPECT_EQ(Error(DealOf(5, {1, 1})),
            "deal: members: not ascending or out of range (expected 2 to 3, got 1)");
  EXPECT_EQ(Error(DealOf(5, {0, 4})),
            "deal: members: not ascending or out of range (expected 1 to 3, got 4)");
  EXPECT_EQ(Error(DealOf(5, {0}, {3, 2})),
            "deal: departed: not ascending or out of range (expected 4 to 3, got 2)");
  Deal grown = DealOf(5, {0});
  grown.set_accumulate(kMostAccumulated + 1);
  EXPECT_EQ(Error(grown), "deal: accumulate: out of range (expected 0 to 1048576, got 1048577)");
  Deal shared = DealOf(5, {0, 1});
  shared.add_batches(3);
  EXPECT_EQ(Error(shared),
            "deal: batches: not one number for each member (expected 0 or 2 numbers, got 1)");
  shared.add_batches(0);
  EXPECT_EQ(Error(shared), "deal: batches: out of range (expected 1 to 1048576, got 0)");
  shared.set_batches(1, 8);
  EXPECT_EQ(Error(shared), "");
}

TEST(DealCheckTest, ALogLineSaysHowManyBatchesAMemberTakes) {
  Deal deal = DealOf(5, {0, 3});
  EXPECT_EQ(DealText(deal), "from step 5 on, the examples are dealt among 2 workers");
  deal.set_accumulate(4);
  EXPECT_EQ(DealText(deal),
            "from step 5 on, the examples are dealt among 2 workers, which accumulate 4 batches");
  deal.add_batches(8);
  deal.add_batches(3);
  EXPECT_EQ(DealText(deal),
            "from step 5 on, the examples are dealt among 2 workers, which take 3 to 8 batches in "
            "a step");
}

}  // namespace
}  // namespace thinwire
