#include "server/protocols/rules/rule_lead.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/inline_executor.h"
#include "common/time/clock.h"
#include "server/protocols/rules/rule_follower.h"

namespace thinwire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Keeps the calls of SetMode until the test answers them.
class WaitingPeers final : public Peers {
 public:
  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value, " (there)");
  }
  void Start(ServerId, AnyPeerCall call) override {
    auto& change = std::get<PeerCall<SetModeRequest>>(call);
    asked_.push_back(change.request.consistency().workers());
    newest_ = change.request;
    calls_.push_back(std::move(change.done));
  }
  void Answer(const absl::Status& status) {
    const RuleLead::SetModeDone done = std::move(calls_.front());
    calls_.pop_front();
    if (status.ok()) return done(SetModeReply());
    done(status);
  }
  // Returns the numbers of workers that the calls pass on.
  const std::vector<uint32_t>& asked() const { return asked_; }
  const SetModeRequest& newest() const { return newest_; }

 private:
  std::vector<uint32_t> asked_;
  SetModeRequest newest_;
  std::deque<RuleLead::SetModeDone> calls_;
};

Rule WithMost(Rule rule, uint32_t max_workers) {
  rule.max_workers = max_workers;
  return rule;
}

// Returns the lead's request for mode sync with this number of workers.
SetModeRequest Workers(uint32_t workers, uint64_t change = 1) {
  SetModeRequest request;
  request.mutable_consistency()->set_workers(workers);
  request.set_change(change);
  return request;
}

Consistency ModeOf(Consistency::Mode::Value mode) {
  Consistency settings;
  settings.set_mode(mode);
  return settings;
}

// Shards without memory for more than `room` workers.
class FakeShards final : public ServerShards {
 public:
  bool has_model() const override { return true; }
  const Partition& partition() const override { return partition_; }
  Step frontier() const override { return Step{}; }
  // With the fewest steps ahead, the lead announces step 40.
  std::optional<Step> LargestNext() const override { return Step{40 - Dealer::kLeastSteps}; }
  absl::Status Reserve(uint32_t workers) override {
    if (workers > room) return absl::InvalidArgumentError("no room");
    reserved = workers;
    return absl::OkStatus();
  }
  void ApplyToEach(const std::function<Event(ShardId)>& event_of,
                   std::function<void()> then) override {
    const Event event = event_of(ShardId{0});
    applied.push_back(std::get<RuleEvent>(event).rule);
    from = std::get<RuleEvent>(event).from;
    then();
  }

  uint32_t room = 100;  // the number of workers whose connections fit
  uint32_t reserved = 0;
  std::vector<Rule> applied;
  Step from;  // of the last applied rule

 private:
  const Partition partition_ = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
};

// A store that fails with `error`.
class FakeStore final : public DecisionStore {
 public:
  void RecordLead(const Recorded& then) override {
    ++record_count;
    then(error);
  }
  void RecordDeal(const Deal&, const Recorded&) override { ADD_FAILURE(); }
  absl::Status StoreRule(const SetModeRequest& request) override {
    if (error.ok()) stored = request;
    return error;
  }

  int record_count = 0;
  absl::Status error;
  SetModeRequest stored;
};

// A server with its rule.
template <typename Protocol>
struct Server {
  JobState state;
  std::optional<Protocol> rules;
};

class RuleLeadTest : public testing::Test {
 protected:
  JobState StateOf(const Rule& rule, uint64_t epoch) const {
    return JobState({.job = "train", .run = RunId{9}, .epoch = Epoch{epoch}}, rule, limits_,
                    absl::Seconds(10), /*server_count=*/1);
  }
  // Returns the lead of a job with RULE. Its changes get the numbers above CHANGE.
  std::unique_ptr<Server<RuleLead>> Make(const Rule& rule, uint32_t server_count = 1,
                                         uint64_t change = 0) {
    auto server = std::make_unique<Server<RuleLead>>(StateOf(rule, change));
    server->rules.emplace(server->state, server_count, &peers_, shards_, store_, clock_, control_);
    return server;
  }
  std::unique_ptr<Server<RuleFollower>> MakeFollower(const Rule& rule) {
    auto server = std::make_unique<Server<RuleFollower>>(StateOf(rule, 0));
    server->rules.emplace(server->state, shards_, control_);
    return server;
  }
  // Continues as a process that has restored its state.
  template <typename Protocol>
  static absl::Status Resume(Server<Protocol>& server) {
    server.state.recovered = true;
    return server.rules->Begin();
  }
  void SetMode(Server<RuleLead>& lead, const Consistency& settings, bool force = false) {
    SetModeRequest request;
    *request.mutable_consistency() = settings;
    request.set_force(force);
    mode_reply_.reset();
    lead.rules->SetMode(request, [this](auto reply) { mode_reply_ = std::move(reply); });
  }
  void Scale(Server<RuleLead>& lead, uint32_t workers) {
    reply_.reset();
    lead.rules->Scale(workers,
                      [this](absl::StatusOr<ScaleReply> reply) { reply_ = std::move(reply); });
  }

  InlineExecutor control_;
  ManualClock clock_;
  WaitingPeers peers_;
  FakeShards shards_;
  FakeStore store_;
  ModeLimits limits_;
  std::optional<absl::StatusOr<SetModeReply>> mode_reply_;
  std::optional<absl::StatusOr<ScaleReply>> reply_;
};

TEST_F(RuleLeadTest, MoreWorkersGetTheNewRuleFirst) {
  const auto lead = Make(WithMost(Rule::Sync(2), 8), 3);
  Scale(*lead, 4);
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4));
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(lead->state.rule.target(), 2u);
  EXPECT_FALSE(reply_.has_value());
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(lead->state.rule.target(), 4u);
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Sync(4), 8)));
  ASSERT_TRUE(reply_.has_value() && reply_->ok());
  EXPECT_EQ((*reply_)->workers(), 2u);
}

TEST_F(RuleLeadTest, FewerWorkersLeaveFirst) {
  const auto lead = Make(WithMost(Rule::Backup(4, 1), 8));
  Scale(*lead, 3);
  ASSERT_TRUE(reply_.has_value() && reply_->ok());
  EXPECT_EQ(lead->state.rule.target(), 3u);
  EXPECT_EQ(lead->state.rule.reduction(), 3u);
  EXPECT_EQ(store_.record_count, 1);
  lead->rules->Complete(/*may_shrink=*/false);
  EXPECT_THAT(shards_.applied, IsEmpty());
  lead->rules->Complete(/*may_shrink=*/true);
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Backup(3, 1), 8)));
  EXPECT_EQ(shards_.reserved, 3u);
  EXPECT_EQ(lead->state.rule.reduction(), 0u);
  lead->rules->Complete(/*may_shrink=*/true);
  EXPECT_EQ(shards_.applied.size(), 1u);
}

TEST_F(RuleLeadTest, AnUnreachableServerIsNamedAndNothingChanges) {
  const auto lead = Make(WithMost(Rule::Async(2), 8), 2);
  Scale(*lead, 3);
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(reply_->status(), absl::UnavailableError("server 1 (there): refused"));
  EXPECT_EQ(lead->state.rule.target(), 2u);
  EXPECT_THAT(shards_.applied, IsEmpty());
}

TEST_F(RuleLeadTest, ANumberOutOfRangeIsRefused) {
  const auto sync = Make(WithMost(Rule::Sync(2), 8));
  Scale(*sync, 9);
  EXPECT_EQ(reply_->status(),
            absl::InvalidArgumentError(
                "workers: out of range (expected 1 to 8, the value of max_workers, got 9)"));
  Scale(*sync, 0);
  EXPECT_EQ(reply_->status().code(), absl::StatusCode::kInvalidArgument);
  const auto backup = Make(WithMost(Rule::Backup(4, 2), 8));
  Scale(*backup, 2);
  EXPECT_EQ(reply_->status(),
            absl::InvalidArgumentError(
                "workers: out of range (expected 3 to 8, the value of max_workers, got 2)"));
}

TEST_F(RuleLeadTest, AnotherServerFollowsTheLead) {
  const auto follower = MakeFollower(WithMost(Rule::Sync(2), 8));
  const auto ignore = [](const absl::StatusOr<SetModeReply>&) {};
  follower->rules->SetMode(Workers(4), ignore);
  follower->rules->SetMode(Workers(4), ignore);
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Sync(4), 8)));
  EXPECT_EQ(follower->state.rule.target(), 4u);
}

TEST_F(RuleLeadTest, AnOldChangeOfTheLeadIsRefused) {
  const auto follower = MakeFollower(WithMost(Rule::Sync(2), 8));
  const auto follow = [&](const SetModeRequest& request) {
    follower->rules->SetMode(request, [this](auto reply) { mode_reply_ = std::move(reply); });
    return mode_reply_->status();
  };
  EXPECT_EQ(follow(Workers(4, 7)), absl::OkStatus());
  EXPECT_EQ(follow(Workers(4, 7)), absl::OkStatus()) << "the lead may not have the first reply";
  EXPECT_EQ(follow(Workers(3, 6)), absl::FailedPreconditionError(
                                       "change: older than the newest one (expected at least 7)"));
  shards_.room = 5;
  EXPECT_EQ(follow(Workers(6, 9)), absl::InvalidArgumentError("no room"));
  EXPECT_TRUE(absl::IsFailedPrecondition(follow(Workers(5, 8)))) << "older than the refused one";
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Sync(4), 8)));
}

TEST_F(RuleLeadTest, TheLeadNumbersItsChanges) {
  const auto lead = Make(WithMost(Rule::Sync(2), 8), 2, /*change=*/50);
  Scale(*lead, 4);
  EXPECT_EQ(peers_.newest().job(), "train");
  EXPECT_EQ(peers_.newest().run(), 9u);
  EXPECT_EQ(peers_.newest().change(), 51u);
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(peers_.newest().change(), 52u) << "the earlier rule replaces the later one";
  peers_.Answer(absl::UnavailableError("refused"));
  lead->rules->Complete(/*may_shrink=*/false);
  EXPECT_EQ(peers_.newest().change(), 53u);
}

TEST_F(RuleLeadTest, AModeWithANewWarningNeedsForce) {
  // The push has a warning in every mode, which is not new.
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "optimization { optimizer: momentum learning_rate: 0.06 } "
      "compression { push: randomk density: 0.05 }",
      &limits_.config.emplace()));
  const auto lead = Make(Rule::Sync(2));
  SetMode(*lead, ModeOf(Consistency::Mode::async));
  EXPECT_EQ(mode_reply_->status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(mode_reply_->status().message()),
              AllOf(StartsWith("momentum: may diverge in mode async with 2 workers"),
                    Not(HasSubstr("randomk")),
                    EndsWith("; thinwire mode --force changes the mode nevertheless")));
  EXPECT_THAT(shards_.applied, IsEmpty());
  SetMode(*lead, ModeOf(Consistency::Mode::async), /*force=*/true);
  ASSERT_TRUE(mode_reply_->ok()) << mode_reply_->status();
  EXPECT_THAT((*mode_reply_)->warnings(),
              ElementsAre(StartsWith("momentum: may diverge in mode async")));
  SetMode(*lead, ModeOf(Consistency::Mode::sync));
  ASSERT_TRUE(mode_reply_->ok()) << "the warning is not new";
  EXPECT_EQ(shards_.applied.size(), 2u);
}

TEST_F(RuleLeadTest, MoreWorkersThanFitIntoTheMemoryAreRefused) {
  shards_.room = 3;
  const auto lead = Make(WithMost(Rule::Sync(2), 8), 2);
  Scale(*lead, 4);
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("no room"));
  EXPECT_THAT(peers_.asked(), IsEmpty());
  const auto follower = MakeFollower(WithMost(Rule::Sync(2), 8));
  follower->rules->SetMode(Workers(4), [this](auto reply) { mode_reply_ = std::move(reply); });
  EXPECT_EQ(mode_reply_->status(), absl::InvalidArgumentError("no room"));
  EXPECT_THAT(shards_.applied, IsEmpty());
  EXPECT_EQ(lead->state.rule.target(), 2u);
  EXPECT_EQ(follower->state.rule.target(), 2u);
}

TEST_F(RuleLeadTest, AfterARefusalOfOneServerTheOthersGetTheEarlierNumberAgain) {
  const auto lead = Make(WithMost(Rule::Sync(2), 8), 3);
  Scale(*lead, 4);
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::InvalidArgumentError("no room"));
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("server 2 (there): no room"));
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4, 2, 2));
  EXPECT_EQ(shards_.reserved, 2u);
  Scale(*lead, 5);
  EXPECT_EQ(reply_->status().code(), absl::StatusCode::kUnavailable);
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(shards_.applied, IsEmpty());
  Scale(*lead, 3);
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4, 2, 2, 3, 3));
}

TEST_F(RuleLeadTest, ARestoredReductionIsCompleted) {
  const auto lead = Make(WithMost(Rule::Sync(4), 8));
  lead->state.rule.RestoreReduction(2);
  EXPECT_EQ(lead->state.rule.target(), 2u);
  EXPECT_EQ(lead->state.rule.reduction(), 2u);
  lead->state.rule.RestoreReduction(0);
  EXPECT_EQ(lead->state.rule.target(), 4u);
  lead->state.rule.RestoreReduction(2);
  lead->rules->Complete(/*may_shrink=*/true);
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Sync(2), 8)));
  EXPECT_TRUE(Resume(*lead).ok());
  EXPECT_EQ(shards_.reserved, 2u);
}

TEST_F(RuleLeadTest, ARestoredRuleStays) {
  const auto lead = Make(WithMost(Rule::Sync(2), 8));
  lead->state.rule.Restore({WithMost(Rule::Sync(5), 8), Step{}});
  ASSERT_TRUE(Resume(*lead).ok());
  EXPECT_EQ(lead->state.rule.target(), 5u);
  lead->rules->Complete(true);
  lead->rules->Complete(true);
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Sync(5), 8)))
      << "a shard may lack the rule, because the end of the event log was torn";
}

TEST_F(RuleLeadTest, ARestoredFollowerAppliesTheRuleOnceMore) {
  const auto follower = MakeFollower(WithMost(Rule::Sync(2), 8));
  follower->state.rule.Restore({WithMost(Rule::Sync(4), 8), Step{}});
  ASSERT_TRUE(Resume(*follower).ok());
  const auto ignore = [](const absl::StatusOr<SetModeReply>&) {};
  follower->rules->SetMode(Workers(4), ignore);
  follower->rules->SetMode(Workers(4), ignore);
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Sync(4), 8)));
}

// The lead may end while the other servers have a rule that it does not have.
TEST_F(RuleLeadTest, AResumedLeadPassesItsFirstRuleOn) {
  const auto lead = Make(WithMost(Rule::Sync(2), 8), 2);
  ASSERT_TRUE(Resume(*lead).ok());
  lead->rules->Complete(true);
  EXPECT_THAT(peers_.asked(), ElementsAre(2));
}

TEST_F(RuleLeadTest, ARestoredRuleIsPassedOnUntilAllServersHaveIt) {
  const auto lead = Make(WithMost(Rule::Sync(2), 8), 2);
  lead->state.rule.Restore({WithMost(Rule::Ssp(5, 3, 2), 8), Step{17}});
  ASSERT_TRUE(Resume(*lead).ok());
  lead->rules->Complete(true);
  peers_.Answer(absl::UnavailableError("refused"));
  lead->rules->Complete(true);
  EXPECT_EQ(peers_.newest().step(), 17u);
  EXPECT_EQ(peers_.newest().consistency().ShortDebugString(),
            "mode: ssp workers: 5 slack: 3 fold_every: 2 ordered_fold: false in_flight: 0");
  peers_.Answer(absl::OkStatus());
  lead->rules->Complete(true);
  EXPECT_THAT(peers_.asked(), ElementsAre(5, 5));
}

TEST_F(RuleLeadTest, ANewModeBeginsAtAStepAhead) {
  const auto lead = Make(WithMost(Rule::Sync(3, /*ordered_fold=*/true), 8), 2);
  Consistency settings = ModeOf(Consistency::Mode::backup);
  settings.set_backup(1);
  SetMode(*lead, settings);
  EXPECT_FALSE(mode_reply_.has_value());
  peers_.Answer(absl::OkStatus());
  ASSERT_TRUE(mode_reply_.has_value() && mode_reply_->ok());
  EXPECT_EQ((*mode_reply_)->mode(), "sync");
  EXPECT_EQ((*mode_reply_)->step(), 40u);
  EXPECT_EQ(shards_.from, Step{40});
  EXPECT_EQ(peers_.newest().step(), 40u);
  Scale(*lead, 5);
  peers_.Answer(absl::OkStatus());
  SetMode(*lead, ModeOf(Consistency::Mode::sync));
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(shards_.applied,
              ElementsAre(WithMost(Rule::Backup(3, 1), 8), WithMost(Rule::Backup(5, 1), 8),
                          WithMost(Rule::Sync(5, /*ordered_fold=*/true), 8)));
}

TEST_F(RuleLeadTest, AFollowerAppliesTheModeOfTheLead) {
  const auto lead = Make(WithMost(Rule::Sync(3), 8), 2);
  Consistency settings = ModeOf(Consistency::Mode::ssp);
  settings.set_slack(4);
  settings.set_fold_every(2);
  SetMode(*lead, settings);
  const auto follower = MakeFollower(WithMost(Rule::Sync(3), 8));
  follower->rules->SetMode(peers_.newest(), [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
  Rule rule = WithMost(Rule::Ssp(3, 4, 2), 8);
  rule.in_flight = Consistency().in_flight();
  EXPECT_THAT(shards_.applied, ElementsAre(rule));
  EXPECT_EQ(shards_.from, Step{40});
}

TEST_F(RuleLeadTest, AModeKeepsTheStepsInFlightOfTheJob) {
  Rule async = WithMost(Rule::Async(3), 8);
  async.in_flight = 7;
  const auto lead = Make(async);
  Consistency ssp = ModeOf(Consistency::Mode::ssp);
  ssp.set_slack(4);
  SetMode(*lead, ssp);
  SetMode(*lead, ModeOf(Consistency::Mode::sync));
  Rule expected = WithMost(Rule::Ssp(3, 4), 8);
  expected.in_flight = 7;
  EXPECT_THAT(shards_.applied, ElementsAre(expected, WithMost(Rule::Sync(3), 8)));
}

TEST_F(RuleLeadTest, AModeThatTheJobCannotHaveIsRefused) {
  limits_.adaptive = true;
  const auto lead = Make(WithMost(Rule::Sync(3), 8), 2);
  SetMode(*lead, ModeOf(Consistency::Mode::async));
  EXPECT_EQ(mode_reply_->status(),
            absl::InvalidArgumentError(
                "mode: not possible with push: adaptive (expected sync, got async)"));
  Consistency settings = ModeOf(Consistency::Mode::backup);
  settings.set_backup(3);
  SetMode(*lead, settings);
  EXPECT_EQ(mode_reply_->status(),
            absl::InvalidArgumentError("backup: out of range (expected below 3, the value of "
                                       "workers, got 3)"));
  EXPECT_THAT(peers_.asked(), IsEmpty());
  EXPECT_THAT(shards_.applied, IsEmpty());
}

TEST_F(RuleLeadTest, AfterARefusalAllServersKeepTheEarlierMode) {
  const auto lead = Make(WithMost(Rule::Sync(3), 8), 2);
  SetMode(*lead, ModeOf(Consistency::Mode::async));
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(mode_reply_->status(), absl::UnavailableError("server 1 (there): refused"));
  EXPECT_EQ(peers_.newest().consistency().mode(), Consistency::Mode::sync);
  EXPECT_EQ(peers_.newest().step(), 0u);
  SetMode(*lead, ModeOf(Consistency::Mode::async));
  EXPECT_EQ(mode_reply_->status().code(), absl::StatusCode::kUnavailable) << "not complete";
  EXPECT_THAT(shards_.applied, IsEmpty());
}

TEST_F(RuleLeadTest, AfterARefusalTheEarlierModeIsPassedOnUntilAllServersHaveIt) {
  const auto lead = Make(WithMost(Rule::Sync(3), 8), 3);
  SetMode(*lead, ModeOf(Consistency::Mode::async));
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::UnavailableError("refused"));
  for (int i = 0; i < 2; ++i) {
    peers_.Answer(absl::UnavailableError("refused"));
    peers_.Answer(absl::OkStatus());
    lead->rules->Complete(/*may_shrink=*/false);
    EXPECT_EQ(peers_.newest().consistency().mode(), Consistency::Mode::sync);
  }
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::OkStatus());
  lead->rules->Complete(/*may_shrink=*/false);
  EXPECT_THAT(peers_.asked(), ElementsAre(3, 3, 3, 3, 3, 3, 3, 3));
  EXPECT_THAT(shards_.applied, IsEmpty());
}

TEST_F(RuleLeadTest, ALeadContinuesFromTheRuleThatItHasStored) {
  const auto lead = Make(WithMost(Rule::Async(3), 8), 2, /*change=*/50);
  SetMode(*lead, ModeOf(Consistency::Mode::ssp));
  EXPECT_FALSE(store_.stored.has_consistency()) << "server 1 may refuse the rule";
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(store_.stored.DebugString(), peers_.newest().DebugString());

  const auto next = Make(WithMost(Rule::Async(3), 8), 2, /*change=*/100);
  EXPECT_EQ(next->state.rule.Restore(store_.stored, Step{50}), absl::OkStatus());
  EXPECT_EQ(next->state.rule.rule(), WithMost(Rule::Ssp(3, 0, 1), 8));
  ASSERT_TRUE(Resume(*next).ok());
  next->rules->Complete(/*may_shrink=*/false);
  EXPECT_EQ(peers_.newest().step(), 50u) << "the servers have gone back together";
  EXPECT_EQ(peers_.newest().change(), 101u);
  store_.stored.mutable_consistency()->set_workers(0);
  EXPECT_EQ(next->state.rule.Restore(store_.stored, Step{}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RuleLeadTest, ARuleThatTheShardsHaveIsNotBegunAgain) {
  const auto lead = Make(WithMost(Rule::Sync(4), 8));
  EXPECT_EQ(lead->state.rule.Restore(Workers(4), Step{50}), absl::OkStatus());
  ASSERT_TRUE(Resume(*lead).ok());
  lead->rules->Complete(/*may_shrink=*/false);
  EXPECT_EQ(shards_.from, Step{});
}

TEST_F(RuleLeadTest, AReductionThatCannotBeStoredIsRefused) {
  const auto lead = Make(WithMost(Rule::Sync(4), 8));
  store_.error = absl::ResourceExhaustedError("disk full");
  Scale(*lead, 2);
  EXPECT_EQ(reply_->status(), store_.error);
  EXPECT_EQ(lead->state.rule.target(), 4u);
}

TEST_F(RuleLeadTest, AStoredRuleKeepsTheReductionOfTheSameNumberOfWorkers) {
  for (const uint32_t workers : {4, 5}) {
    const auto lead = Make(WithMost(Rule::Sync(4), 8));
    lead->state.rule.RestoreReduction(2);
    EXPECT_EQ(lead->state.rule.Restore(Workers(workers), Step{}), absl::OkStatus());
    EXPECT_EQ(lead->state.rule.reduction(), workers == 4 ? 2u : 0u);
  }
}

TEST_F(RuleLeadTest, ARuleThatCannotBeStoredIsTakenBack) {
  const auto lead = Make(WithMost(Rule::Async(3), 8), 2);
  store_.error = absl::ResourceExhaustedError("the disk is full");
  SetMode(*lead, ModeOf(Consistency::Mode::ssp));
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(mode_reply_->status(), store_.error);
  EXPECT_EQ(peers_.newest().consistency().mode(), Consistency::Mode::async);
  peers_.Answer(absl::OkStatus());
  store_.error = absl::OkStatus();
  lead->rules->Complete(/*may_shrink=*/false);
  EXPECT_EQ(peers_.newest().change(), 3u);
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(store_.stored.consistency().mode(), Consistency::Mode::async);
  EXPECT_THAT(shards_.applied, IsEmpty());
}

TEST_F(RuleLeadTest, TheLeadRemindsTheOtherServersOfTheNewestRule) {
  const auto lead = Make(WithMost(Rule::Async(3), 8), 2, /*change=*/50);
  SetMode(*lead, ModeOf(Consistency::Mode::ssp));
  lead->rules->Remind();
  EXPECT_EQ(peers_.asked().size(), 1u) << "the change is not complete";
  const SetModeRequest change = peers_.newest();
  peers_.Answer(absl::OkStatus());
  lead->rules->Remind();
  EXPECT_EQ(peers_.asked().size(), 2u);
  EXPECT_EQ(peers_.newest().DebugString(), change.DebugString());
  peers_.Answer(absl::UnavailableError("refused"));
  lead->rules->Complete(/*may_shrink=*/false);
  EXPECT_EQ(peers_.asked().size(), 2u) << "a reminder without a reply changes nothing";
}

TEST_F(RuleLeadTest, TheLeadAdjustsARuleAtAnAnnouncedStep) {
  const Rule sync = WithMost(Rule::Sync(4), 8);
  const auto lead = Make(sync, 2);
  lead->rules->Adjust(sync, WithMost(Rule::Backup(4, 1), 8), "a reason");
  lead->rules->Adjust(sync, WithMost(Rule::Backup(4, 2), 8), "another change is not complete");
  EXPECT_EQ(peers_.newest().consistency().backup(), 1u);
  EXPECT_EQ(peers_.newest().step(), 40u);
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(shards_.applied, ElementsAre(WithMost(Rule::Backup(4, 1), 8)));
  EXPECT_EQ(shards_.from, Step{40});
}

TEST_F(RuleLeadTest, ARuleThatIsNotTheNewestIsNotAdjusted) {
  const Rule sync = WithMost(Rule::Sync(4), 8);
  const auto lead = Make(sync);
  lead->rules->Adjust(WithMost(Rule::Sync(3), 8), WithMost(Rule::Backup(3, 1), 8),
                      "the number of workers has changed meanwhile");
  Scale(*lead, 3);
  lead->rules->Adjust(sync, WithMost(Rule::Backup(4, 1), 8), "a reduction is not complete");
  EXPECT_THAT(shards_.applied, IsEmpty());
}

}  // namespace
}  // namespace thinwire
