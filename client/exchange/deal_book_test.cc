#include "client/exchange/deal_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/time/time.h"

namespace thinwire::client {
namespace {

using ::testing::SizeIs;

void AddDeal(uint64_t step, google::protobuf::RepeatedPtrField<Deal>& deals, uint32_t number = 0) {
  Deal& deal = *deals.Add();
  deal.set_step(step);
  deal.set_number(number > 0 ? number : static_cast<uint32_t>(deals.size()));
  deal.add_members(0);
}

JoinReply Joined(uint64_t dealt_until, std::initializer_list<uint64_t> steps) {
  JoinReply reply;
  for (const uint64_t step : steps) AddDeal(step, *reply.mutable_deals());
  reply.set_dealt_until(dealt_until);
  return reply;
}

HeartbeatRequest Known(const DealBook& book) {
  HeartbeatRequest request;
  book.FillIn(request);
  return request;
}

bool Knows(const DealBook& book, uint64_t step) {
  return book.Wait(Step{step}, absl::ZeroDuration());
}

TEST(DealBookTest, AWorkerDoesNotWaitForALeadThatDealsNothing) {
  DealBook book;
  ASSERT_TRUE(book.Reset(JoinReply()).ok());
  EXPECT_TRUE(Knows(book, 1'000'000));
}

TEST(DealBookTest, StepsBelowTheAnnouncedOneMayBegin) {
  DealBook book;
  ASSERT_TRUE(book.Reset(Joined(8, {3})).ok());
  EXPECT_TRUE(Knows(book, 7));
  EXPECT_FALSE(Knows(book, 8));
  EXPECT_EQ(Known(book).deal_count(), 1u);
  EXPECT_EQ(Known(book).dealt_until(), 8u);
}

TEST(DealBookTest, AHeartbeatAddsNewDeals) {
  DealBook book;
  ASSERT_TRUE(book.Reset(Joined(8, {3})).ok());
  HeartbeatReply reply;
  AddDeal(8, *reply.mutable_deals(), 2);
  reply.set_dealt_until(20);
  ASSERT_TRUE(book.Add(reply).ok());
  EXPECT_TRUE(Knows(book, 19));
  ASSERT_THAT(book.DealsAfter(0), SizeIs(2));
  ASSERT_THAT(book.DealsAfter(1), SizeIs(1));
  EXPECT_EQ(book.DealsAfter(1)[0].step(), 8u);
  // The lead was started again meanwhile, and says all deals.
  ASSERT_TRUE(book.Add(Joined(16, {3, 8, 16})).ok());
  EXPECT_THAT(book.DealsAfter(0), SizeIs(3));
  EXPECT_TRUE(Knows(book, 19)) << "a promise stays";
}

TEST(DealBookTest, ALateReplyAddsNoDealTwice) {
  DealBook book;
  ASSERT_TRUE(book.Reset(Joined(8, {})).ok());
  ASSERT_TRUE(book.Add(Joined(20, {8})).ok());
  HeartbeatReply reply;
  AddDeal(8, *reply.mutable_deals());
  ASSERT_TRUE(book.Add(reply).ok());
  EXPECT_THAT(book.DealsAfter(0), SizeIs(1));
}

TEST(DealBookTest, ADealThatBeginsAnEpochReplacesEarlierOnes) {
  DealBook book;
  ASSERT_TRUE(book.Reset(Joined(8, {3})).ok());
  HeartbeatReply reply;
  AddDeal(40, *reply.mutable_deals(), 7);
  reply.mutable_deals(0)->set_epoch(2);
  AddDeal(50, *reply.mutable_deals(), 8);
  ASSERT_TRUE(book.Add(reply).ok());
  EXPECT_EQ(Known(book).deal_count(), 8u);
  ASSERT_THAT(book.DealsAfter(1), SizeIs(2));
  EXPECT_EQ(book.DealsAfter(1)[0].step(), 40u);
  EXPECT_THAT(book.DealsAfter(7), SizeIs(1));
  // A worker that knows the deals keeps them.
  DealBook other;
  ASSERT_TRUE(other.Reset(Joined(8, {1, 2, 3, 4, 5, 6, 7})).ok());
  ASSERT_TRUE(other.Add(reply).ok());
  EXPECT_THAT(other.DealsAfter(0), SizeIs(8));
}

TEST(DealBookTest, ADealAfterAMissingOneIsIgnored) {
  DealBook book;
  ASSERT_TRUE(book.Reset(Joined(8, {3})).ok());
  HeartbeatReply reply;
  AddDeal(50, *reply.mutable_deals(), 3);
  ASSERT_TRUE(book.Add(reply).ok());
  EXPECT_EQ(Known(book).deal_count(), 1u);
}

TEST(DealBookTest, AHeartbeatStatesTheEpochOfTheWorker) {
  DealBook book;
  EXPECT_EQ(Known(book).data_epoch(), 0u);
  book.BeginEpoch(3, Step{70});
  EXPECT_EQ(Known(book).data_epoch(), 3u);
  EXPECT_EQ(Known(book).data_epoch_begin(), 70u);
}

TEST(DealBookTest, AnInvalidDealIsAnError) {
  DealBook book;
  EXPECT_EQ(book.Reset(Joined(8, {5, 4})).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(book.DealsAfter(0), SizeIs(0));
}

TEST(DealBookTest, AWaitEndsWhenTheDealsAreKnown) {
  DealBook book;
  ASSERT_TRUE(book.Reset(Joined(8, {})).ok());
  std::thread adder([&book] { EXPECT_TRUE(book.Add(Joined(9, {})).ok()); });
  EXPECT_TRUE(book.Wait(Step{8}, absl::Minutes(1)));
  adder.join();
}

TEST(DealBookTest, ARetiredWorkerStaysRetired) {
  DealBook book;
  HeartbeatReply reply;
  EXPECT_FALSE(book.retired());
  reply.set_retired(true);
  ASSERT_TRUE(book.Add(reply).ok());
  ASSERT_TRUE(book.Add(HeartbeatReply()).ok());
  EXPECT_TRUE(book.retired());
}

TEST(DealBookTest, NoWaitOutlastsARollback) {
  DealBook book;
  JoinReply reply;
  reply.set_dealt_until(8);
  ASSERT_TRUE(book.Reset(reply).ok());
  book.EndWaits();
  EXPECT_TRUE(book.Wait(Step{7}, absl::InfiniteDuration()));
  EXPECT_FALSE(book.Wait(Step{8}, absl::InfiniteDuration()));
  ASSERT_TRUE(book.Reset(reply).ok());
  EXPECT_FALSE(book.Wait(Step{8}, absl::Milliseconds(1)));
}

}  // namespace
}  // namespace thinwire::client
