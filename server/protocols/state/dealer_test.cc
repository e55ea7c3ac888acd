#include "server/protocols/state/dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "absl/time/time.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

std::vector<WorkerId> Workers(std::initializer_list<uint32_t> numbers) {
  std::vector<WorkerId> workers;
  for (const uint32_t number : numbers) workers.push_back(WorkerId{number});
  return workers;
}

Step NextOf(WorkerId worker) { return Step{10 + worker.value}; }

uint64_t DealtUntil(Dealer& dealer) {
  HeartbeatReply reply;
  dealer.FillIn(0, reply);
  return reply.dealt_until();
}

class DealerTest : public testing::Test {
 protected:
  // Returns the deal at SECONDS. The live workers LIVE have not changed for one second before.
  std::optional<Deal> Propose(std::initializer_list<uint32_t> live, double seconds = 100) {
    EXPECT_FALSE(dealer_.Propose(Workers(live), {}, NextOf, At(seconds - 1)).has_value());
    return dealer_.Propose(Workers(live), {}, NextOf, At(seconds));
  }

  Dealer dealer_{3, absl::Seconds(10)};
};

TEST_F(DealerTest, TheFirstWorkersNeedNoDeal) {
  dealer_.Advance(Step{0}, At(0));
  EXPECT_FALSE(Propose({0, 1, 2}).has_value());
  EXPECT_FALSE(Propose({}).has_value()) << "no worker is left";
}

TEST_F(DealerTest, WorkersMayBeginTheStepsOfThreeSeconds) {
  dealer_.Advance(Step{0}, At(0));
  EXPECT_EQ(DealtUntil(dealer_), 8u);
  for (int step = 1; step <= 100; ++step) dealer_.Advance(Step(step * 10), At(step * 0.1));
  // 100 steps per second.
  EXPECT_GE(DealtUntil(dealer_), 1000u + 280);
  EXPECT_LE(DealtUntil(dealer_), 1000u + 320);
  dealer_.Advance(Step{1000}, At(60));
  EXPECT_GE(DealtUntil(dealer_), 1000u + 280) << "a promise is kept";
}

TEST_F(DealerTest, NoWorkerMayBeginTheStepsFromTheLimitOn) {
  dealer_.set_limit(Step{5});
  dealer_.Advance(Step{0}, At(0));
  EXPECT_EQ(DealtUntil(dealer_), 5u);
  dealer_.Advance(Step{5}, At(1));
  EXPECT_EQ(DealtUntil(dealer_), 5u);
  dealer_.set_limit(Step{9});
  EXPECT_EQ(DealtUntil(dealer_), 9u);
  dealer_.set_limit(std::nullopt);
  EXPECT_EQ(DealtUntil(dealer_), 13u);
}

TEST_F(DealerTest, ADealBeginsAtAStepThatNoWorkerHasBegun) {
  dealer_.Advance(Step{12}, At(0));
  EXPECT_EQ(DealtUntil(dealer_), 20u);
  const auto deal = Propose({0, 2, 5});
  ASSERT_TRUE(deal.has_value());
  EXPECT_EQ(deal->step(), 20u);
  EXPECT_THAT(deal->members(), ElementsAre(0, 2, 5));
  ASSERT_THAT(deal->departed(), SizeIs(1));
  EXPECT_EQ(deal->departed(0).worker(), 1u);
  EXPECT_EQ(deal->departed(0).next(), 11u);
}

TEST_F(DealerTest, AGrowthIsADealAmongTheSameMembers) {
  dealer_.Advance(Step{12}, At(0));
  EXPECT_EQ(DealtUntil(dealer_), 20u);
  EXPECT_FALSE(Propose({0, 1, 2}).has_value());
  dealer_.KeepBatches(1, 100);
  EXPECT_FALSE(Propose({0, 1, 2}).has_value()) << "the batches are those of the job file";
  dealer_.Grow(6);
  EXPECT_EQ(dealer_.batches(), 6u);
  const auto grown = Propose({0, 1, 2});
  ASSERT_TRUE(grown.has_value());
  EXPECT_EQ(grown->step(), 20u);
  EXPECT_EQ(grown->accumulate(), 2u);
  EXPECT_THAT(grown->members(), ElementsAre(0, 1, 2));
  EXPECT_THAT(grown->departed(), IsEmpty());
  EXPECT_FALSE(Propose({0, 1, 2}, 101).has_value()) << "waits for Commit";
  dealer_.Commit();
  EXPECT_FALSE(Propose({0, 1, 2}, 102).has_value()) << "nothing has changed since";
  EXPECT_EQ(dealer_.BatchesAt(Step{19}), 3u);
  EXPECT_EQ(dealer_.BatchesAt(Step{20}), 6u);

  // The members of the next deal take the same batches together.
  const auto left = Propose({0, 2}, 110);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->accumulate(), 3u);
  EXPECT_THAT(left->batches(), IsEmpty()) << "3 each";
  dealer_.Commit();
  EXPECT_EQ(dealer_.MemberCountAt(Step{left->step() - 1}), 3u);
  EXPECT_EQ(dealer_.MemberCountAt(Step{left->step()}), 2u);
}

TEST_F(DealerTest, MoreMembersTakeTheSameBatchesTogether) {
  dealer_.Advance(Step{12}, At(0));
  dealer_.KeepBatches(2, 100);
  const auto next = [this](std::initializer_list<uint32_t> live, double seconds) {
    const auto deal = Propose(live, seconds);
    dealer_.Commit();
    EXPECT_EQ(deal.has_value(), true);
    return deal.value_or(Deal());
  };
  EXPECT_EQ(dealer_.batches(), 6u);
  const Deal four = next({0, 1, 2, 3}, 110);
  EXPECT_EQ(four.accumulate(), 2u) << "the most of a member";
  EXPECT_THAT(four.batches(), ElementsAre(2, 2, 1, 1));
  const Deal six = next({0, 1, 2, 3, 4, 5}, 120);
  EXPECT_EQ(six.accumulate(), 1u);
  EXPECT_THAT(six.batches(), IsEmpty());
  EXPECT_THAT(next({4}, 130).accumulate(), 6u);
  // A member takes at least one batch. This makes the batch larger, and it stays so.
  EXPECT_EQ(next({0, 1, 2, 3, 4, 5, 6, 7}, 140).accumulate(), 1u);
  EXPECT_EQ(next({0, 1}, 150).accumulate(), 4u);
}

TEST_F(DealerTest, AMemberTakesAtMostTheBatchesOfItsLimit) {
  dealer_.Advance(Step{12}, At(0));
  dealer_.KeepBatches(1, 4);
  dealer_.Grow(12);
  EXPECT_EQ(Propose({0, 1, 2}).value().accumulate(), 4u);
  dealer_.Commit();
  dealer_.Grow(13);
  EXPECT_FALSE(Propose({0, 1, 2}, 110).has_value());
  EXPECT_EQ(Propose({0, 1}, 120).value().accumulate(), 4u);
  dealer_.Commit();
  EXPECT_EQ(Propose({0, 1, 2, 3}, 130).value().accumulate(), 4u) << "all 13 batches again";
}

TEST_F(DealerTest, ARestartedLeadKeepsTheBatchesOfAllMembers) {
  Deal deal;
  deal.set_step(40);
  deal.set_accumulate(4);
  for (const uint32_t worker : {0, 1, 2}) deal.add_members(worker);
  for (const uint32_t batches : {4, 4, 3}) deal.add_batches(batches);
  dealer_.Reset({deal});
  dealer_.Resume(At(0));
  dealer_.Advance(Step{50}, At(0));
  EXPECT_EQ(dealer_.batches(), 11u);
  EXPECT_FALSE(Propose({0, 1, 2}).has_value());
  const auto left = Propose({0, 1}, 120);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->accumulate(), 6u);
  EXPECT_THAT(left->batches(), ElementsAre(6, 5));
  dealer_.Commit();
  dealer_.KeepBatches(1, 100);
  EXPECT_FALSE(Propose({0, 1}, 130).has_value()) << "the task of a worker changes nothing";
}

TEST_F(DealerTest, ADealStatesTheBatchesOfEachMember) {
  dealer_.Advance(Step{12}, At(0));
  EXPECT_EQ(dealer_.BatchesOf(WorkerId{1}), 0u);
  dealer_.Share(8, {{WorkerId{1}, 3}, {WorkerId{2}, 7}});
  const auto shared = Propose({0, 1, 2});
  ASSERT_TRUE(shared.has_value());
  EXPECT_THAT(shared->batches(), ElementsAre(8, 3, 7));
  dealer_.Commit();
  EXPECT_EQ(dealer_.BatchesOf(WorkerId{1}), 3u);
  EXPECT_EQ(dealer_.BatchesOf(WorkerId{5}), 0u);
  EXPECT_FALSE(Propose({0, 1, 2}, 102).has_value()) << "nothing has changed since";
  const auto joined = Propose({1, 2, 5}, 110);
  ASSERT_TRUE(joined.has_value());
  EXPECT_THAT(joined->batches(), ElementsAre(3, 7, 8)) << "a new worker takes the most";
}

TEST_F(DealerTest, ARestartedLeadKeepsTheBatchesOfEachMember) {
  Deal deal;
  deal.set_step(40);
  for (const uint32_t worker : {0, 1, 2}) {
    deal.add_members(worker);
    deal.add_batches(4 + worker);
  }
  dealer_.Reset({deal});
  dealer_.Resume(At(0));
  dealer_.Advance(Step{50}, At(0));
  EXPECT_FALSE(Propose({0, 1, 2}).has_value());
  const auto changed = Propose({0, 2, 3}, 120);
  ASSERT_TRUE(changed.has_value());
  EXPECT_THAT(changed->batches(), ElementsAre(4, 6, 6));
}

TEST_F(DealerTest, MembersThatChangeTogetherMakeOneDeal) {
  dealer_.Advance(Step{12}, At(0));
  EXPECT_FALSE(dealer_.Propose(Workers({1, 2}), {}, NextOf, At(10)).has_value());
  EXPECT_FALSE(dealer_.Propose(Workers({2}), {}, NextOf, At(10.9)).has_value());
  EXPECT_FALSE(dealer_.Propose(Workers({2}), {}, NextOf, At(11.8)).has_value());
  EXPECT_FALSE(dealer_.Propose(Workers({}), {}, NextOf, At(11.9)).has_value());
  EXPECT_FALSE(dealer_.Propose(Workers({}), {}, NextOf, At(13)).has_value());
  EXPECT_FALSE(dealer_.Propose(Workers({0, 1}), {}, NextOf, At(14)).has_value());
  EXPECT_TRUE(dealer_.Propose(Workers({0, 1}), {}, NextOf, At(15)).has_value());
}

TEST_F(DealerTest, AWorkerWhoseNewProcessWaitsStaysAMember) {
  dealer_.Advance(Step{12}, At(0));
  for (const double seconds : {10, 12}) {
    const auto deal = dealer_.Propose(Workers({0, 2}), Workers({1}), NextOf, At(seconds));
    EXPECT_FALSE(deal.has_value());
  }
}

TEST_F(DealerTest, AReplacedProcessDepartsAtItsFirstUnfinishedStep) {
  dealer_.Advance(Step{12}, At(0));
  dealer_.Replace(WorkerId{1}, Step{5});
  dealer_.Replace(WorkerId{1}, Step{9});
  dealer_.Replace(WorkerId{7}, Step{3});
  const auto deal = Propose({0, 1, 2});
  ASSERT_TRUE(deal.has_value());
  EXPECT_THAT(deal->members(), ElementsAre(0, 2));
  ASSERT_THAT(deal->departed(), SizeIs(1)) << "worker 7 was no member";
  EXPECT_EQ(deal->departed(0).worker(), 1u);
  EXPECT_EQ(deal->departed(0).next(), 5u) << "the step of the first lost process";
  dealer_.Commit();
  const auto next = Propose({0, 1, 2}, 110);
  ASSERT_TRUE(next.has_value()) << "the new process becomes a member";
  EXPECT_THAT(next->members(), ElementsAre(0, 1, 2));
  EXPECT_THAT(next->departed(), IsEmpty());
}

TEST_F(DealerTest, ADealIsAnnouncedWhenItIsDurable) {
  dealer_.Advance(Step{12}, At(0));
  ASSERT_TRUE(Propose({0, 2}).has_value());
  dealer_.Advance(Step{500}, At(1));
  HeartbeatReply before;
  dealer_.FillIn(0, before);
  EXPECT_THAT(before.deals(), IsEmpty());
  EXPECT_THAT(dealer_.deals(), SizeIs(1)) << "for a checkpoint";
  EXPECT_EQ(before.dealt_until(), 20u) << "the step of the deal";
  EXPECT_FALSE(Propose({0}, 110).has_value()) << "one deal at a time";
  dealer_.Commit();
  HeartbeatReply after;
  dealer_.FillIn(0, after);
  EXPECT_THAT(after.deals(), SizeIs(1));
  EXPECT_GT(after.dealt_until(), 500u);
  HeartbeatReply known;
  dealer_.FillIn(1, known);
  EXPECT_THAT(known.deals(), IsEmpty());
  JoinReply joined;
  dealer_.FillIn(joined);
  EXPECT_THAT(joined.deals(), SizeIs(1));
  EXPECT_EQ(joined.dealt_until(), after.dealt_until());
  EXPECT_FALSE(Propose({0, 2}, 120).has_value());
  EXPECT_TRUE(Propose({0, 1, 2}, 130).has_value()) << "a worker that returns is a member again";
}

TEST_F(DealerTest, ARestartedLeadWaitsForTheWorkersPromises) {
  dealer_.Advance(Step{12}, At(0));
  dealer_.Resume(At(0));
  EXPECT_FALSE(Propose({0, 1}, 2).has_value());
  dealer_.Heard(WorkerId{0}, 70);
  EXPECT_FALSE(dealer_.Propose(Workers({0, 1}), {}, NextOf, At(9)).has_value());
  dealer_.Heard(WorkerId{1}, 50);
  const auto deal = dealer_.Propose(Workers({0, 1}), {}, NextOf, At(9));
  ASSERT_TRUE(deal.has_value());
  EXPECT_EQ(deal->step(), 70u);
}

TEST_F(DealerTest, ARestartedLeadWaitsForOneLease) {
  dealer_.Advance(Step{12}, At(0));
  dealer_.Resume(At(0));
  dealer_.Heard(WorkerId{0}, 70);
  EXPECT_FALSE(Propose({0, 1}, 9.9).has_value());
  EXPECT_TRUE(dealer_.Propose(Workers({0, 1}), {}, NextOf, At(10)).has_value());
}

Deal DealAt(uint64_t step) {
  Deal deal;
  deal.set_step(step);
  deal.add_members(0);
  deal.set_number(static_cast<uint32_t>(step));
  return deal;
}

TEST_F(DealerTest, TheDealsBeforeAnEpochAreReplacedWhenNoWorkerNeedsThem) {
  std::map<uint32_t, uint64_t> finished = {{0, 60}, {1, 60}, {2, 45}};
  const auto next = [&finished](WorkerId worker) { return Step{finished[worker.value]}; };
  const auto drop = [&](uint64_t epoch, uint64_t begin, uint64_t limit = 1000) {
    dealer_.Drop(epoch, Step{begin}, Step{limit}, Workers({0, 1, 2}), next);
    return dealer_.deals().size();
  };
  Deal two = DealAt(10), four = DealAt(50);
  two.set_number(1);
  two.add_members(2);
  two.add_departed()->set_worker(1);
  Deal three = DealAt(20);
  three.set_number(2);
  three.add_members(1);
  three.set_accumulate(2);
  four.set_number(3);
  dealer_.Reset({two, three, four});
  EXPECT_EQ(drop(1, 20), 3u) << "only one deal is older";
  EXPECT_EQ(drop(0, 40), 3u) << "no epoch is stated";
  EXPECT_EQ(drop(2, 40, 39), 3u) << "the workers may go back to step 39";
  EXPECT_EQ(drop(3, 48), 3u) << "worker 2 has not finished step 45";
  dealer_.Replace(WorkerId{0}, Step{30});
  EXPECT_EQ(drop(2, 40), 3u) << "the examples of a lost process from step 30 on are dealt anew";
  ASSERT_FALSE(Propose({0, 1}).value().departed().empty());
  dealer_.Withdraw();
}

TEST_F(DealerTest, OneDealReplacesThoseBeforeAnEpoch) {
  Deal two = DealAt(10), three = DealAt(20), four = DealAt(50);
  two.set_number(1);
  three.set_number(2);
  three.add_members(1);
  three.set_accumulate(2);
  four.set_number(3);
  dealer_.Reset({two, three, four});
  const auto drop = [&](uint64_t epoch, uint64_t begin) {
    dealer_.Drop(epoch, Step{begin}, Step{1000}, Workers({0, 1, 2}),
                 [](WorkerId) { return Step{60}; });
    return dealer_.deals().size();
  };
  EXPECT_EQ(drop(2, 40), 2u);
  const Deal first = dealer_.deals()[0];
  EXPECT_EQ(first.step(), 40u);
  EXPECT_EQ(first.epoch(), 2u);
  EXPECT_EQ(first.number(), 2u);
  EXPECT_EQ(first.accumulate(), 2u);
  EXPECT_THAT(first.members(), ElementsAre(0, 1));
  EXPECT_THAT(first.departed(), IsEmpty());
  EXPECT_EQ(drop(1, 30), 2u) << "an earlier epoch";
  EXPECT_EQ(dealer_.MemberCountAt(Step{30}), 2u);
  HeartbeatReply known, unknown;
  dealer_.FillIn(2, known);
  EXPECT_THAT(known.deals(), SizeIs(1));
  dealer_.FillIn(1, unknown);
  EXPECT_THAT(unknown.deals(), SizeIs(2));
  // The log has the replaced deals.
  dealer_.Replay(three);
  dealer_.Replay(four);
  Deal five = DealAt(55);
  five.set_number(4);
  dealer_.Replay(five);
  ASSERT_THAT(dealer_.deals(), SizeIs(3));
  EXPECT_EQ(dealer_.deals()[2].number(), 4u);

  // The next deal has the next number. No worker departs before the epoch.
  dealer_.Advance(Step{60}, At(0));
  dealer_.Replace(WorkerId{0}, Step{3});
  const auto added = Propose({0, 1});
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(added->number(), 5u);
  ASSERT_THAT(added->departed(), SizeIs(1));
  EXPECT_EQ(added->departed(0).next(), 40u);
}

TEST_F(DealerTest, TheLogContinuesTheDealsOfTheCheckpoint) {
  dealer_.Reset({DealAt(1), DealAt(2)});
  dealer_.Replay(DealAt(2));
  dealer_.Replay(DealAt(3));
  dealer_.Resume(At(0));
  ASSERT_THAT(dealer_.deals(), SizeIs(3));
  EXPECT_EQ(dealer_.deals()[2].step(), 3u);
  dealer_.Reset({DealAt(1)});
  dealer_.Replay(DealAt(2));
  dealer_.Resume(At(0));
  ASSERT_THAT(dealer_.deals(), SizeIs(2));
  EXPECT_EQ(DealtUntil(dealer_), 0u) << "nothing is known of the progress yet";
  dealer_.Advance(Step{0}, At(0));
  EXPECT_EQ(DealtUntil(dealer_), 8u);
}

}  // namespace
}  // namespace thinwire
