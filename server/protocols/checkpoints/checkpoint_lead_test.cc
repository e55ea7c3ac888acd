#include "server/protocols/checkpoints/checkpoint_lead.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/time/virtual_time.h"
#include "server/protocols/checkpoints/checkpointer.h"

namespace thinwire {
namespace {

constexpr RunId kRun{7};
constexpr absl::Duration kInterval = absl::Seconds(30);

FollowReply Reply(uint64_t generation, std::vector<uint64_t> steps) {
  FollowReply reply;
  reply.set_run(kRun.value);
  reply.set_generation(generation);
  for (const uint64_t step : steps) reply.add_checkpoint_steps(step);
  return reply;
}

// Answers every call within the call.
class FakePeers final : public Peers {
 public:
  std::string NameOf(ServerId) const override { return "server 1 (fake)"; }
  void Start(ServerId, AnyPeerCall call) override {
    if (const auto* order = std::get_if<PeerCall<RollbackRequest>>(&call)) {
      rollbacks.push_back(order->request);
      return order->done(RollbackReply());
    }
    const auto& follow = std::get<PeerCall<FollowRequest>>(call);
    follows.push_back(follow.request);
    follow.done(reply);
  }

  absl::StatusOr<FollowReply> reply = Reply(1, {});
  std::vector<FollowRequest> follows;
  std::vector<RollbackRequest> rollbacks;
};

class CheckpointLeadTest : public testing::Test, private LeadServer {
 protected:
  void Make(bool settled, uint64_t keep_every = 0) {
    LeadServer& server = *this;
    lead_.emplace("train", 2, &peers_, *control_, server, settled, keep_every);
  }
  void Tick(absl::Duration after, uint64_t frontier) {
    now_ += after;
    own_.frontier = Step{frontier};
    lead_->Tick(now_, kInterval);
    while (!time_.empty()) time_.RunNext();
  }

  FakePeers peers_;
  VirtualTime time_;
  const std::unique_ptr<Executor> control_ = time_.Make();
  ServerCheckpoints own_ = {.run = kRun, .generation = {1}, .awaits_rollback = false, .steps = {}};
  std::optional<RollbackOrder> order_;
  absl::Status failure_;
  absl::Time now_ = absl::UnixEpoch();
  std::optional<CheckpointLead> lead_;

 private:
  ServerCheckpoints Checkpoints() const override { return own_; }
  void RollBack(const RollbackOrder& order, Returned done) override {
    order_ = order;
    done(absl::OkStatus());
  }
  void Fail(const absl::Status& status) override { failure_ = status; }
};

TEST_F(CheckpointLeadTest, AStepIsAnnouncedTwoSecondsAheadOfTheFrontier) {
  own_.steps = {{0}};
  peers_.reply = Reply(1, {0});
  Make(/*settled=*/true);
  uint64_t frontier = 0;
  Tick(absl::ZeroDuration(), frontier);
  EXPECT_FALSE(peers_.follows.back().has_checkpoint_step());
  while (!lead_->announced().has_value()) {
    frontier += 10;
    Tick(absl::Seconds(1), frontier);
    ASSERT_LT(frontier, 1000u);
  }
  EXPECT_EQ(frontier, 300u);
  EXPECT_EQ(lead_->announced(), Step{320});
  EXPECT_EQ(peers_.follows.back().checkpoint_step(), 320u) << "announced at once";
}

TEST_F(CheckpointLeadTest, PlannedStepsAreAnnouncedAtOnceAndInsteadOfOthers) {
  own_.steps = {{0}};
  peers_.reply = Reply(1, {0});
  Make(/*settled=*/true);
  lead_->Plan(std::nullopt);
  Tick(absl::ZeroDuration(), 5);
  Tick(3 * kInterval, 50);
  EXPECT_EQ(lead_->announced(), std::nullopt);
  lead_->Plan(Step{90});
  Tick(absl::ZeroDuration(), 50);
  EXPECT_EQ(lead_->announced(), Step{90});
  EXPECT_EQ(peers_.follows.back().checkpoint_step(), 90u);
  lead_->Plan(Step{200});
  Tick(kInterval, 80);
  EXPECT_EQ(lead_->announced(), Step{90}) << "the checkpoint of step 90 is not made yet";
  Tick(kInterval, 90);
  EXPECT_EQ(lead_->announced(), Step{200});
}

TEST_F(CheckpointLeadTest, ASlowRunAnnouncesAtLeastFourStepsAhead) {
  own_.steps = {{0}};
  peers_.reply = Reply(1, {0});
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 5);
  Tick(kInterval, 5);
  EXPECT_EQ(lead_->announced(), Step{9});
}

TEST_F(CheckpointLeadTest, ALateServerDelaysTheNextStepByOneInterval) {
  own_.steps = {{0}};
  peers_.reply = Reply(1, {0});
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 0);
  Tick(kInterval, 0);
  ASSERT_EQ(lead_->announced(), Step{4});
  own_.steps = {{0}, {4}};
  Tick(kInterval, 100);
  Tick(kInterval / 2, 100);
  EXPECT_EQ(lead_->announced(), Step{4}) << "the other server has no checkpoint of step 4";
  Tick(kInterval / 2, 100);
  EXPECT_GT(lead_->announced(), Step{100});
}

TEST_F(CheckpointLeadTest, NothingIsAnnouncedBeforeTheFrontierReachesTheLastStep) {
  own_.steps = {{0}, {4}};
  peers_.reply = Reply(1, {0, 4});
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 0);
  Tick(kInterval, 0);
  ASSERT_EQ(lead_->announced(), Step{4});
  Tick(5 * kInterval, 3);
  EXPECT_EQ(lead_->announced(), Step{4});
}

TEST_F(CheckpointLeadTest, ALeadWithoutShardsFollowsTheFrontierOfTheOtherServers) {
  own_.steps = {{0}};
  peers_.reply = Reply(1, {0});
  peers_.reply->set_frontier(50);
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 0);
  Tick(kInterval, 0);
  EXPECT_EQ(lead_->announced(), Step{54});
}

TEST_F(CheckpointLeadTest, EveryServerKeepsTheNewestCommonStep) {
  own_.steps = {{0}, {8}, {16}};
  peers_.reply = Reply(1, {0, 8, 24});
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 0);
  EXPECT_FALSE(peers_.follows.back().has_kept_step()) << "the steps of the server were unknown";
  EXPECT_EQ(lead_->kept(), Step{8});
  Tick(absl::Seconds(1), 0);
  EXPECT_EQ(peers_.follows.back().kept_step(), 8u);
  own_.steps.push_back({24});
  peers_.reply = absl::UnavailableError("restarting");
  Tick(absl::Seconds(1), 0);
  EXPECT_EQ(lead_->kept(), Step{8});
  peers_.reply = Reply(1, {8, 24});
  Tick(absl::Seconds(1), 0);
  EXPECT_EQ(lead_->kept(), Step{24});
}

TEST_F(CheckpointLeadTest, NothingIsAnnouncedBeforeEveryServerHasAnswered) {
  own_.steps = {{0}};
  peers_.reply = absl::UnavailableError("starting");
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 0);
  Tick(5 * kInterval, 0);
  EXPECT_EQ(lead_->announced(), std::nullopt);
  peers_.reply = Reply(1, {0});
  Tick(absl::Seconds(1), 0);
  Tick(absl::Seconds(1), 0);
  EXPECT_EQ(lead_->announced(), Step{4});
}

TEST_F(CheckpointLeadTest, TheOtherServersAreOrderedToFollowTheLead) {
  own_ = {.run = kRun, .generation = {2}, .awaits_rollback = false, .steps = {{0}, {8}}};
  peers_.reply = Reply(1, {0, 8, 16});
  Make(/*settled=*/false);
  Tick(absl::ZeroDuration(), 8);
  ASSERT_EQ(peers_.rollbacks.size(), 1u);
  EXPECT_EQ(peers_.rollbacks[0].generation(), 2u);
  EXPECT_EQ(peers_.rollbacks[0].step(), 8u);
  EXPECT_EQ(peers_.rollbacks[0].run(), kRun.value);
  EXPECT_FALSE(lead_->settled());
  peers_.reply = absl::UnavailableError("restarting");
  Tick(absl::Milliseconds(100), 8);
  EXPECT_FALSE(lead_->settled());
  peers_.reply = Reply(2, {0, 8});
  Tick(absl::Milliseconds(100), 8);
  EXPECT_TRUE(lead_->settled());
  EXPECT_EQ(peers_.rollbacks.size(), 1u);
}

TEST_F(CheckpointLeadTest, AServerThatAwaitsARollbackSendsTheLeadBack) {
  own_.steps = {{0}, {8}};
  peers_.reply = Reply(1, {0});
  peers_.reply->set_awaits_rollback(true);
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 8);
  const RollbackOrder expected = {{ServerId{0}}, Generation{2}, Step{0}};
  EXPECT_EQ(order_, expected);
  EXPECT_TRUE(peers_.rollbacks.empty());
}

// A checkpoint that one server keeps alone is of no use.
TEST_F(CheckpointLeadTest, EveryServerKeepsTheSameSteps) {
  own_.steps = {{0}, {10}, {14}, {21}, {25}, {27}, {29}};
  peers_.reply = Reply(1, {0, 10, 14, 25, 26, 27});
  Make(/*settled=*/true, /*keep_every=*/10);
  Tick(absl::ZeroDuration(), 0);
  EXPECT_EQ(lead_->kept(), Step{27});
  // Server 1 has no checkpoint of step 21, so step 25 is the first one at or after step 20.
  EXPECT_EQ(lead_->kept_steps(), (std::vector<Step>{{10}, {25}, {27}}));
  Tick(absl::Seconds(1), 0);
  const auto& told = peers_.follows.back().kept_steps();
  EXPECT_EQ(std::vector<uint64_t>(told.begin(), told.end()), (std::vector<uint64_t>{10, 25, 27}));
}

// The end of the write could remove the checkpoint.
TEST_F(CheckpointLeadTest, AReturnWaitsUntilEveryServerKeepsTheStep) {
  own_.steps = {{8}, {16}};
  peers_.reply = Reply(1, {8, 16});
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 16);
  absl::Status returned = absl::UnknownError("not called");
  lead_->Return(Step{8}, [&returned](const absl::Status& status) { returned = status; });
  peers_.reply->set_writing(true);
  Tick(absl::ZeroDuration(), 16);
  Tick(kInterval, 16);
  EXPECT_EQ(order_, std::nullopt);
  EXPECT_EQ(lead_->announced(), std::nullopt) << "no further checkpoint is made";
  EXPECT_EQ(peers_.follows.back().kept_step(), 16u);
  ASSERT_EQ(peers_.follows.back().kept_steps_size(), 2);
  EXPECT_EQ(peers_.follows.back().kept_steps(0), 8u);
  EXPECT_TRUE(absl::IsUnavailable(lead_->AnnounceNow(now_, /*live=*/true).status()));
  peers_.reply->set_writing(false);
  Tick(absl::Seconds(1), 16);
  const RollbackOrder expected = {{ServerId{0}}, Generation{2}, Step{8}};
  EXPECT_EQ(order_, expected);
  EXPECT_EQ(returned, absl::OkStatus());
}

TEST_F(CheckpointLeadTest, ARollbackEndsAReturn) {
  own_.steps = {{8}, {16}};
  peers_.reply = Reply(1, {8, 16});
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 16);
  absl::Status returned;
  lead_->Return(Step{8}, [&returned](const absl::Status& status) { returned = status; });
  peers_.reply->set_awaits_rollback(true);
  Tick(absl::Seconds(1), 16);
  const RollbackOrder expected = {{ServerId{0}}, Generation{2}, Step{16}};
  EXPECT_EQ(order_, expected);
  EXPECT_TRUE(absl::IsUnavailable(returned)) << returned;
}

TEST_F(CheckpointLeadTest, AServerThatRefusesAnOldLeadEndsItsJob) {
  peers_.reply = absl::FailedPreconditionError("generation: an older one");
  Make(/*settled=*/true);
  Tick(absl::ZeroDuration(), 0);
  EXPECT_TRUE(absl::StrContains(std::string(failure_.message()), "server 1 (fake): generation"));
}

TEST(AutomaticIntervalTest, GrowsWithTheRootOfTheCost) {
  EXPECT_EQ(AutomaticInterval(std::nullopt, absl::Hours(1)), absl::Seconds(10));
  EXPECT_EQ(AutomaticInterval(absl::Seconds(2), absl::Hours(1)), absl::Seconds(120));
  EXPECT_EQ(AutomaticInterval(absl::Seconds(8), absl::Hours(1)), absl::Seconds(240));
  EXPECT_EQ(AutomaticInterval(absl::ZeroDuration(), absl::Hours(1)), absl::Seconds(1));
}

}  // namespace
}  // namespace thinwire
