#include "server/protocols/state/membership.h"

#include <gtest/gtest.h>

#include <optional>

namespace thinwire {
namespace {

constexpr WorkerId kW{1};
constexpr absl::Duration kLease = absl::Seconds(10);

absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

class MembershipTest : public testing::Test {
 protected:
  Membership membership_{3, kLease};
};

TEST_F(MembershipTest, TheFirstProcessIsIncarnationOne) {
  EXPECT_EQ(*membership_.Assign(kW, At(0), At(0)).value(), Incarnation{1});
  EXPECT_EQ(membership_.Live(), std::vector<WorkerId>{kW});
}

TEST_F(MembershipTest, ALaterGenerationAssignsAboveTheEarlierOnesAndAdmitsTheirProcesses) {
  const uint64_t earlier = Membership::kIncarnationsPerGeneration;
  Membership second(3, kLease, Generation{2});
  EXPECT_TRUE(second.Adopt(kW, {5}, At(0)).ok()) << "assigned after the checkpoint";
  EXPECT_EQ(second.Adopt(kW, {earlier + 1}, At(0)).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(second.Adopt(kW, {6}, At(1)).ok());
  EXPECT_EQ(second.Adopt(kW, {5}, At(2)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*second.Assign(WorkerId{0}, At(0), At(0)).value(), Incarnation{earlier + 1});
}

TEST_F(MembershipTest, AForgottenProcessOfAnEarlierGenerationMayLeave) {
  Membership second(3, kLease, Generation{2});
  second.Restore(kW, {4}, {4}, /*left=*/false, At(0));
  EXPECT_TRUE(second.Leave(kW, {5}).ok());
  EXPECT_TRUE(second.of(kW).live()) << "another process";
  EXPECT_EQ(second.Leave(kW, {Membership::kIncarnationsPerGeneration + 1}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(second.Leave(kW, {3}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MembershipTest, ANewProcessIsRefusedWhenTheOldOneSendsAMessage) {
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_EQ(membership_.Assign(kW, At(3), At(3)).value(), std::nullopt);
  EXPECT_EQ(membership_.Renew(kW, {1}, At(5)), LeaseState::kRenewed);
  const absl::Status refused = membership_.Assign(kW, At(3), At(6)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(refused.message(), "worker 1: is in use; its process sent a message 1s ago");
}

TEST_F(MembershipTest, ANewProcessTakesOverWhenTheLeaseEnds) {
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_EQ(membership_.Assign(kW, At(3), At(10)).value(), std::nullopt);
  EXPECT_EQ(membership_.Assign(kW, At(3), At(11)).value(), std::nullopt)
      << "the shards have not heard of the end of the lease";
  EXPECT_EQ(membership_.Expire(At(11)), (std::vector<Membership::Process>{{kW, {1}}}));
  EXPECT_EQ(*membership_.Assign(kW, At(3), At(11)).value(), Incarnation{2});
  EXPECT_EQ(membership_.Renew(kW, {1}, At(12)), LeaseState::kFenced);
  EXPECT_EQ(membership_.Renew(kW, {2}, At(12)), LeaseState::kRenewed);
}

TEST_F(MembershipTest, AllLiveProcessesStopBeforeTheLargestOfTheirSteps) {
  for (const uint32_t w : {0u, 1u, 2u}) {
    ASSERT_TRUE(membership_.Assign(WorkerId{w}, At(0), At(0)).ok());
  }
  EXPECT_EQ(membership_.StopStep(), std::nullopt);
  membership_.Stop(WorkerId{0}, {1}, Step{7});
  membership_.Stop(WorkerId{1}, {1}, Step{8});
  membership_.Stop(WorkerId{2}, {9}, Step{9});
  EXPECT_EQ(membership_.StopStep(), std::nullopt) << "worker 2 goes on";
  EXPECT_TRUE(membership_.Leave(WorkerId{2}, {1}).ok());
  EXPECT_EQ(membership_.StopStep(), Step{8});
  EXPECT_TRUE(membership_.Leave(WorkerId{1}, {1}).ok());
  EXPECT_EQ(membership_.StopStep(), Step{8}) << "worker 1 has pushed step 7";
  ASSERT_TRUE(membership_.Assign(WorkerId{1}, At(1), At(1)).ok());
  EXPECT_EQ(membership_.StopStep(), std::nullopt) << "a new process goes on";
}

TEST_F(MembershipTest, AProcessThatLeavesFreesItsNumberAtOnce) {
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_TRUE(membership_.Leave(kW, {1}).ok());
  EXPECT_TRUE(membership_.Leave(kW, {1}).ok());
  EXPECT_TRUE(membership_.Live().empty());
  EXPECT_EQ(membership_.Renew(kW, {1}, At(1)), LeaseState::kUnknown);
  EXPECT_EQ(*membership_.Assign(kW, At(1), At(1)).value(), Incarnation{2});
}

TEST_F(MembershipTest, TheReasonOfALeaveIsKeptUntilTheNextProcess) {
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_TRUE(membership_.Leave(kW, {1}, {.failed = true, .diverged = "a symptom"}).ok());
  EXPECT_TRUE(membership_.of(kW).departure.failed);
  EXPECT_EQ(membership_.of(kW).departure.diverged, "a symptom");
  ASSERT_TRUE(membership_.Assign(kW, At(1), At(1)).ok());
  EXPECT_FALSE(membership_.of(kW).departure.failed);
  EXPECT_EQ(membership_.of(kW).departure.diverged, "");
}

TEST_F(MembershipTest, OnlyTheDrainedProcessIsRetired) {
  EXPECT_EQ(membership_.Retire(kW).message(),
            "worker 1: not live (expected a live worker, got one that never joined)");
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_FALSE(membership_.of(kW).retired);
  EXPECT_TRUE(membership_.Retire(kW).ok());
  EXPECT_TRUE(membership_.of(kW).retired);
  EXPECT_TRUE(membership_.Leave(kW, {1}).ok());
  EXPECT_EQ(membership_.Retire(kW).message(),
            "worker 1: not live (expected a live worker, got one that has left)");
  ASSERT_TRUE(membership_.Assign(kW, At(1), At(1)).ok());
  EXPECT_FALSE(membership_.of(kW).retired);
  membership_.Expire(At(12));
  EXPECT_EQ(membership_.Retire(kW).message(),
            "worker 1: not live (expected a live worker, got one whose lease has expired)");
}

TEST_F(MembershipTest, ADrainedProcessThatJoinsAgainIsStillDrained) {
  using Processes = std::vector<Membership::Process>;
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_TRUE(membership_.Retire(kW).ok());
  EXPECT_TRUE(membership_.Adopt(kW, {1}, At(1)).ok());
  EXPECT_EQ(membership_.Retired(), (Processes{{kW, Incarnation{1}}}));
  EXPECT_TRUE(membership_.Leave(kW, {1}).ok());
  EXPECT_EQ(membership_.Retired(), Processes());
}

TEST_F(MembershipTest, OnlyTheDrainedProcessIsRestoredAsDrained) {
  membership_.Restore(kW, {2}, {2}, /*left=*/false, At(0));
  membership_.RestoreRetired(kW, {1});
  EXPECT_FALSE(membership_.of(kW).retired);
  membership_.RestoreRetired(kW, {2});
  membership_.Restore(kW, {2}, {2}, /*left=*/false, At(1));
  EXPECT_TRUE(membership_.of(kW).retired);
  membership_.Restore(kW, {2}, {2}, /*left=*/true, At(2));
  EXPECT_FALSE(membership_.of(kW).retired);
  membership_.RestoreRetired(kW, {2});
  EXPECT_FALSE(membership_.of(kW).retired);
}

TEST_F(MembershipTest, TheEvaluatorStaysUntilItIsLostOrLeavesBeforeTheLastStep) {
  EXPECT_EQ(membership_.AppointEvaluator(), std::nullopt);
  ASSERT_TRUE(membership_.Assign(WorkerId{1}, At(0), At(0)).ok());
  ASSERT_TRUE(membership_.Assign(WorkerId{2}, At(0), At(0)).ok());
  EXPECT_EQ(membership_.AppointEvaluator(), WorkerId{1});
  ASSERT_TRUE(membership_.Assign(WorkerId{0}, At(5), At(5)).ok());
  EXPECT_EQ(membership_.AppointEvaluator(), WorkerId{1}) << "it may have evaluated an epoch";
  membership_.Renew(WorkerId{2}, {1}, At(8));
  membership_.Renew(WorkerId{0}, {1}, At(8));
  membership_.Expire(At(11));
  EXPECT_EQ(membership_.AppointEvaluator(), WorkerId{0}) << "worker 1 was lost";
  membership_.Renew(WorkerId{1}, {1}, At(12));
  EXPECT_EQ(membership_.AppointEvaluator(), WorkerId{0});
  ASSERT_TRUE(membership_.Leave(WorkerId{0}, {1}).ok());
  EXPECT_EQ(membership_.AppointEvaluator(), WorkerId{1});
  ASSERT_TRUE(membership_.Leave(WorkerId{1}, {1}, {.finished = true}).ok());
  EXPECT_EQ(membership_.AppointEvaluator(), WorkerId{1}) << "its test is the result of the job";
}

TEST_F(MembershipTest, ALeaseExpiresOnceAndAMessageRenewsIt) {
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  EXPECT_TRUE(membership_.Expire(At(10)).empty());
  EXPECT_EQ(membership_.Expire(At(11)), (std::vector<Membership::Process>{{kW, Incarnation{1}}}));
  EXPECT_TRUE(membership_.Expire(At(12)).empty());
  EXPECT_TRUE(membership_.Live().empty());
  EXPECT_EQ(membership_.Renew(kW, {1}, At(13)), LeaseState::kReturned);
  EXPECT_EQ(membership_.Renew(kW, {1}, At(14)), LeaseState::kRenewed);
  EXPECT_EQ(membership_.Live(), std::vector<WorkerId>{kW});
}

TEST_F(MembershipTest, APauseOfTheServerExtendsLeasesAndIsNoMessage) {
  ASSERT_TRUE(membership_.Assign(kW, At(0), At(0)).ok());
  membership_.ExtendLeases(absl::Seconds(30));
  EXPECT_TRUE(membership_.Expire(At(40)).empty());
  EXPECT_EQ(membership_.Assign(kW, At(1), At(40)).value(), std::nullopt) << "not heard since 1 s";
  EXPECT_EQ(membership_.Expire(At(41)).size(), 1u);
  EXPECT_EQ(membership_.Renew(kW, {1}, At(42)), LeaseState::kReturned);
  EXPECT_EQ(membership_.Expire(At(53)).size(), 1u) << "a message starts an ordinary lease";
}

TEST_F(MembershipTest, AnotherServerAdoptsTheAssignedIncarnation) {
  EXPECT_EQ(membership_.Adopt(kW, {5}, At(0)),
            absl::NotFoundError("worker 1: server 0 has not assigned this incarnation (expected at "
                                "most 0, got 5)"));
  membership_.Announce(kW, {5});
  EXPECT_FALSE(membership_.of(kW).live());
  EXPECT_TRUE(membership_.Adopt(kW, {5}, At(0)).ok());
  EXPECT_TRUE(membership_.Adopt(kW, {5}, At(1)).ok());
  const absl::Status older = membership_.Adopt(kW, {4}, At(1));
  EXPECT_EQ(older.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(older.message(),
            "worker 1: a newer process has this number (expected incarnation 5, got 4)");
  EXPECT_FALSE(membership_.Adopt(kW, {7}, At(1)).ok());
  membership_.Announce(kW, {7});
  membership_.Announce(kW, {6});
  EXPECT_FALSE(membership_.Adopt(kW, {5}, At(1)).ok());
  EXPECT_TRUE(membership_.Adopt(kW, {7}, At(1)).ok());
  EXPECT_EQ(membership_.of(kW).incarnation, Incarnation{7});
}

TEST_F(MembershipTest, AnUnknownProcessHasNoLease) {
  EXPECT_EQ(membership_.Renew(kW, {1}, At(0)), LeaseState::kUnknown);
  EXPECT_EQ(membership_.Leave(kW, {1}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(membership_.Expire(At(100)).empty());
}

TEST(MembersTest, TheLeaseOfAWorkerEndsWithTheFirstOfItsProcesses) {
  Membership membership(3, kLease, Generation{1}, /*member_count=*/2);
  ASSERT_TRUE(membership.Assign(kW, At(0), At(0)).ok());
  EXPECT_EQ(membership.Renew(kW, {1}, At(8), 0), LeaseState::kRenewed);
  EXPECT_TRUE(membership.Expire(At(10)).empty());
  EXPECT_EQ(membership.Renew(kW, {1}, At(10), 1), LeaseState::kRenewed);
  EXPECT_TRUE(membership.Expire(At(18)).empty());
  EXPECT_EQ(membership.Expire(At(19)).size(), 1u) << "of process 0";
}

TEST(MembersTest, AWorkerHasLeftWhenAllItsProcessesHave) {
  Membership membership(3, kLease, Generation{1}, /*member_count=*/2);
  ASSERT_TRUE(membership.Assign(kW, At(0), At(0)).ok());
  ASSERT_TRUE(membership.Leave(kW, {1}, {.finished = true}, 1).ok());
  EXPECT_TRUE(membership.of(kW).live());
  membership.ExtendLeases(absl::Seconds(5));
  EXPECT_EQ(membership.Renew(kW, {1}, At(9), 1), LeaseState::kRenewed) << "a late message";
  EXPECT_EQ(membership.Renew(kW, {1}, At(9), 0), LeaseState::kRenewed);
  EXPECT_TRUE(membership.Expire(At(19)).empty());
  ASSERT_TRUE(membership.Leave(kW, {1}, {.finished = true}, 0).ok());
  EXPECT_TRUE(membership.of(kW).left);
}

TEST(MembersTest, AProcessThatFailsEndsItsWorker) {
  Membership membership(3, kLease, Generation{1}, /*member_count=*/2);
  ASSERT_TRUE(membership.Assign(kW, At(0), At(0)).ok());
  ASSERT_TRUE(membership.Leave(kW, {1}, {.failed = true}, 1).ok());
  EXPECT_TRUE(membership.of(kW).left);
  EXPECT_EQ(membership.Renew(kW, {1}, At(1), 0), LeaseState::kUnknown);
}

TEST(MembersTest, AJoinOfOneProcessRenewsNoOtherLease) {
  Membership membership(3, kLease, Generation{1}, /*member_count=*/2);
  membership.Announce(kW, {1});
  ASSERT_TRUE(membership.Adopt(kW, {1}, At(0), 0).ok());
  ASSERT_TRUE(membership.Adopt(kW, {1}, At(9), 1).ok());
  EXPECT_EQ(membership.Expire(At(11)).size(), 1u);
  EXPECT_EQ(membership.CheckNumber(1, 2).message(),
            "member: not a member of a worker (expected below 2, the value of members, got 2)");
}

}  // namespace
}  // namespace thinwire
