#include "server/protocols/rules/scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/inline_executor.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the calls of SetMode until the test answers them.
class WaitingPeers final : public Peers {
 public:
  std::string NameOf(ServerId server) const override {
    return absl::StrCat("server ", server.value, " (there)");
  }
  void Admit(ServerId, const AdmitRequest&, AdmitDone done) override {
    done(absl::UnimplementedError("not used"));
  }
  void Follow(ServerId, const FollowRequest&, FollowDone) override { ADD_FAILURE(); }
  void Rollback(ServerId, const RollbackRequest&, RollbackDone) override { ADD_FAILURE(); }
  void SaveCheckpoint(ServerId, const SaveCheckpointRequest&, SaveDone) override { ADD_FAILURE(); }
  void Clip(ServerId, const ClipRequest&, ClipDone) override { ADD_FAILURE(); }
  void SetMode(ServerId, const SetModeRequest& request, SetModeDone done) override {
    asked_.push_back(request.consistency().workers());
    newest_ = request;
    calls_.push_back(std::move(done));
  }
  void Answer(const absl::Status& status) {
    const SetModeDone done = std::move(calls_.front());
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
  std::deque<SetModeDone> calls_;
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

class ScalerTest : public testing::Test {
 protected:
  Scaler Make(const Rule& rule, uint32_t server_count = 1, uint64_t change = 0) {
    return Scaler(rule, server_count, change, &peers_, control_,
                  {.request =
                       [] {
                         SetModeRequest request;
                         request.set_job("train");
                         request.set_run(9);
                         return request;
                       },
                   .reserve =
                       [this](uint32_t workers) {
                         if (workers > room_) return absl::InvalidArgumentError("no room");
                         reserved_ = workers;
                         return absl::OkStatus();
                       },
                   .check_mode =
                       [this](const Rule& wanted) {
                         return wanted.mode() == refused_mode_
                                    ? absl::InvalidArgumentError("mode: not in this job")
                                    : absl::OkStatus();
                       },
                   .warnings =
                       [this](const Consistency& consistency) {
                         Problems warnings;
                         if (consistency.mode() == warned_mode_) {
                           warnings.Add("momentum", "may diverge");
                         }
                         if (warns_always_) warnings.Add("density", "too low");
                         return warnings;
                       },
                   .step_ahead = [] { return Step{40}; },
                   .store =
                       [this](const SetModeRequest& request) {
                         if (store_error_.ok()) stored_ = request;
                         return store_error_;
                       },
                   .apply =
                       [this](const RuleEvent& event, const std::function<void()>& then) {
                         applied_.push_back(event.rule);
                         from_ = event.from;
                         then();
                       },
                   .record =
                       [this](const std::function<void(const absl::Status&)>& then) {
                         ++record_count_;
                         then(store_error_);
                       }});
  }
  void SetMode(Scaler& scaler, const Consistency& settings, bool force = false) {
    SetModeRequest request;
    *request.mutable_consistency() = settings;
    request.set_force(force);
    mode_reply_.reset();
    scaler.SetMode(request, [this](auto reply) { mode_reply_ = std::move(reply); });
  }
  void Scale(Scaler& scaler, uint32_t workers) {
    reply_.reset();
    scaler.Scale(workers, [this](absl::StatusOr<ScaleReply> reply) { reply_ = std::move(reply); });
  }

  InlineExecutor control_;
  WaitingPeers peers_;
  uint32_t room_ = 100;  // the number of workers whose connections fit
  uint32_t reserved_ = 0;
  int record_count_ = 0;
  absl::Status store_error_;
  SetModeRequest stored_;
  std::string refused_mode_;
  std::optional<Consistency::Mode::Value> warned_mode_;
  bool warns_always_ = false;
  std::vector<Rule> applied_;
  Step from_;  // of the last applied rule
  std::optional<absl::StatusOr<SetModeReply>> mode_reply_;
  std::optional<absl::StatusOr<ScaleReply>> reply_;
};

TEST_F(ScalerTest, MoreWorkersGetTheNewRuleFirst) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 3);
  Scale(scaler, 4);
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4));
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(scaler.target(), 2u);
  EXPECT_FALSE(reply_.has_value());
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(scaler.target(), 4u);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(4), 8)));
  ASSERT_TRUE(reply_.has_value() && reply_->ok());
  EXPECT_EQ((*reply_)->workers(), 2u);
}

TEST_F(ScalerTest, FewerWorkersLeaveFirst) {
  Scaler scaler = Make(WithMost(Rule::Backup(4, 1), 8));
  Scale(scaler, 3);
  ASSERT_TRUE(reply_.has_value() && reply_->ok());
  EXPECT_EQ(scaler.target(), 3u);
  EXPECT_EQ(scaler.reduction(), 3u);
  EXPECT_EQ(record_count_, 1);
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_THAT(applied_, IsEmpty());
  scaler.Tick(/*may_shrink=*/true);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Backup(3, 1), 8)));
  EXPECT_EQ(reserved_, 3u);
  EXPECT_EQ(scaler.reduction(), 0u);
  scaler.Tick(/*may_shrink=*/true);
  EXPECT_EQ(applied_.size(), 1u);
}

TEST_F(ScalerTest, AnUnreachableServerIsNamedAndNothingChanges) {
  Scaler scaler = Make(WithMost(Rule::Async(2), 8), 2);
  Scale(scaler, 3);
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(reply_->status(), absl::UnavailableError("server 1 (there): refused"));
  EXPECT_EQ(scaler.target(), 2u);
  EXPECT_THAT(applied_, IsEmpty());
}

TEST_F(ScalerTest, ANumberOutOfRangeIsRefused) {
  Scaler sync = Make(WithMost(Rule::Sync(2), 8));
  Scale(sync, 9);
  EXPECT_EQ(reply_->status(),
            absl::InvalidArgumentError(
                "workers: out of range (expected 1 to 8, the value of max_workers, got 9)"));
  Scale(sync, 0);
  EXPECT_EQ(reply_->status().code(), absl::StatusCode::kInvalidArgument);
  Scaler backup = Make(WithMost(Rule::Backup(4, 2), 8));
  Scale(backup, 2);
  EXPECT_EQ(reply_->status(),
            absl::InvalidArgumentError(
                "workers: out of range (expected 3 to 8, the value of max_workers, got 2)"));
}

TEST_F(ScalerTest, AnotherServerFollowsTheLead) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8));
  const auto ignore = [](const absl::StatusOr<SetModeReply>&) {};
  scaler.Follow(Workers(4), ignore);
  scaler.Follow(Workers(4), ignore);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(4), 8)));
  EXPECT_EQ(scaler.target(), 4u);
}

TEST_F(ScalerTest, AnOldChangeOfTheLeadIsRefused) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8));
  const auto follow = [&](const SetModeRequest& request) {
    scaler.Follow(request, [this](auto reply) { mode_reply_ = std::move(reply); });
    return mode_reply_->status();
  };
  EXPECT_EQ(follow(Workers(4, 7)), absl::OkStatus());
  EXPECT_EQ(follow(Workers(4, 7)), absl::OkStatus()) << "the lead may not have the first reply";
  EXPECT_EQ(follow(Workers(3, 6)), absl::FailedPreconditionError(
                                       "change: older than the newest one (expected at least 7)"));
  room_ = 5;
  EXPECT_EQ(follow(Workers(6, 9)), absl::InvalidArgumentError("no room"));
  EXPECT_TRUE(absl::IsFailedPrecondition(follow(Workers(5, 8)))) << "older than the refused one";
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(4), 8)));
}

TEST_F(ScalerTest, TheLeadNumbersItsChanges) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 2, /*change=*/50);
  Scale(scaler, 4);
  EXPECT_EQ(peers_.newest().job(), "train");
  EXPECT_EQ(peers_.newest().run(), 9u);
  EXPECT_EQ(peers_.newest().change(), 51u);
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(peers_.newest().change(), 52u) << "the earlier rule replaces the later one";
  peers_.Answer(absl::UnavailableError("refused"));
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_EQ(peers_.newest().change(), 53u);
}

TEST_F(ScalerTest, AModeWithANewWarningNeedsForce) {
  warned_mode_ = Consistency::Mode::async;
  warns_always_ = true;
  Scaler scaler = Make(Rule::Sync(2));
  SetMode(scaler, ModeOf(Consistency::Mode::async));
  EXPECT_EQ(mode_reply_->status(),
            absl::FailedPreconditionError("momentum: may diverge; thinwire mode --force changes "
                                          "the mode nevertheless"));
  EXPECT_THAT(applied_, IsEmpty());
  SetMode(scaler, ModeOf(Consistency::Mode::async), /*force=*/true);
  ASSERT_TRUE(mode_reply_->ok()) << mode_reply_->status();
  EXPECT_THAT((*mode_reply_)->warnings(), ElementsAre("momentum: may diverge"));
  SetMode(scaler, ModeOf(Consistency::Mode::sync));
  ASSERT_TRUE(mode_reply_->ok()) << "the warning is not new";
  EXPECT_EQ(applied_.size(), 2u);
}

TEST_F(ScalerTest, MoreWorkersThanFitIntoTheMemoryAreRefused) {
  room_ = 3;
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 2);
  Scale(scaler, 4);
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("no room"));
  EXPECT_THAT(peers_.asked(), IsEmpty());
  scaler.Follow(Workers(4), [this](auto reply) { mode_reply_ = std::move(reply); });
  EXPECT_EQ(mode_reply_->status(), absl::InvalidArgumentError("no room"));
  EXPECT_THAT(applied_, IsEmpty());
  EXPECT_EQ(scaler.target(), 2u);
}

TEST_F(ScalerTest, AfterARefusalOfOneServerTheOthersGetTheEarlierNumberAgain) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 3);
  Scale(scaler, 4);
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::InvalidArgumentError("no room"));
  EXPECT_EQ(reply_->status(), absl::InvalidArgumentError("server 2 (there): no room"));
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4, 2, 2));
  EXPECT_EQ(reserved_, 2u);
  Scale(scaler, 5);
  EXPECT_EQ(reply_->status().code(), absl::StatusCode::kUnavailable);
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(applied_, IsEmpty());
  Scale(scaler, 3);
  EXPECT_THAT(peers_.asked(), ElementsAre(4, 4, 2, 2, 3, 3));
}

TEST_F(ScalerTest, ARestoredReductionIsCompleted) {
  Scaler scaler = Make(WithMost(Rule::Sync(4), 8));
  scaler.RestoreReduction(2);
  EXPECT_EQ(scaler.target(), 2u);
  EXPECT_EQ(scaler.reduction(), 2u);
  scaler.RestoreReduction(0);
  EXPECT_EQ(scaler.target(), 4u);
  scaler.RestoreReduction(2);
  scaler.Tick(/*may_shrink=*/true);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(2), 8)));
  EXPECT_TRUE(scaler.Resume().ok());
  EXPECT_EQ(reserved_, 2u);
}

TEST_F(ScalerTest, ARestoredRuleStays) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8));
  scaler.Restore({WithMost(Rule::Sync(5), 8), Step{}});
  ASSERT_TRUE(scaler.Resume().ok());
  EXPECT_EQ(scaler.target(), 5u);
  scaler.Tick(true);
  scaler.Tick(true);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(5), 8)))
      << "a shard may lack the rule, because the end of the event log was torn";
}

TEST_F(ScalerTest, ARestoredFollowerAppliesTheRuleOnceMore) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8));
  scaler.Restore({WithMost(Rule::Sync(4), 8), Step{}});
  ASSERT_TRUE(scaler.Resume().ok());
  const auto ignore = [](const absl::StatusOr<SetModeReply>&) {};
  scaler.Follow(Workers(4), ignore);
  scaler.Follow(Workers(4), ignore);
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Sync(4), 8)));
}

// The lead may end while the other servers have a rule that it does not have.
TEST_F(ScalerTest, AResumedLeadPassesItsFirstRuleOn) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 2);
  ASSERT_TRUE(scaler.Resume().ok());
  scaler.Tick(true);
  EXPECT_THAT(peers_.asked(), ElementsAre(2));
}

TEST_F(ScalerTest, ARestoredRuleIsPassedOnUntilAllServersHaveIt) {
  Scaler scaler = Make(WithMost(Rule::Sync(2), 8), 2);
  scaler.Restore({WithMost(Rule::Ssp(5, 3, 2), 8), Step{17}});
  ASSERT_TRUE(scaler.Resume().ok());
  scaler.Tick(true);
  peers_.Answer(absl::UnavailableError("refused"));
  scaler.Tick(true);
  EXPECT_EQ(peers_.newest().step(), 17u);
  EXPECT_EQ(peers_.newest().consistency().ShortDebugString(),
            "mode: ssp workers: 5 slack: 3 fold_every: 2 ordered_fold: false in_flight: 0");
  peers_.Answer(absl::OkStatus());
  scaler.Tick(true);
  EXPECT_THAT(peers_.asked(), ElementsAre(5, 5));
}

TEST_F(ScalerTest, ANewModeBeginsAtAStepAhead) {
  Scaler scaler = Make(WithMost(Rule::Sync(3, /*ordered_fold=*/true), 8), 2);
  Consistency settings = ModeOf(Consistency::Mode::backup);
  settings.set_backup(1);
  SetMode(scaler, settings);
  EXPECT_FALSE(mode_reply_.has_value());
  peers_.Answer(absl::OkStatus());
  ASSERT_TRUE(mode_reply_.has_value() && mode_reply_->ok());
  EXPECT_EQ((*mode_reply_)->mode(), "sync");
  EXPECT_EQ((*mode_reply_)->step(), 40u);
  EXPECT_EQ(from_, Step{40});
  EXPECT_EQ(peers_.newest().step(), 40u);
  Scale(scaler, 5);
  peers_.Answer(absl::OkStatus());
  SetMode(scaler, ModeOf(Consistency::Mode::sync));
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(applied_,
              ElementsAre(WithMost(Rule::Backup(3, 1), 8), WithMost(Rule::Backup(5, 1), 8),
                          WithMost(Rule::Sync(5, /*ordered_fold=*/true), 8)));
}

TEST_F(ScalerTest, AFollowerAppliesTheModeOfTheLead) {
  Scaler lead = Make(WithMost(Rule::Sync(3), 8), 2);
  Consistency settings = ModeOf(Consistency::Mode::ssp);
  settings.set_slack(4);
  settings.set_fold_every(2);
  SetMode(lead, settings);
  Scaler follower = Make(WithMost(Rule::Sync(3), 8));
  follower.Follow(peers_.newest(), [](const auto& reply) { EXPECT_TRUE(reply.ok()); });
  Rule rule = WithMost(Rule::Ssp(3, 4, 2), 8);
  rule.in_flight = Consistency().in_flight();
  EXPECT_THAT(applied_, ElementsAre(rule));
  EXPECT_EQ(from_, Step{40});
}

TEST_F(ScalerTest, AModeKeepsTheStepsInFlightOfTheJob) {
  Rule async = WithMost(Rule::Async(3), 8);
  async.in_flight = 7;
  Scaler scaler = Make(async);
  Consistency ssp = ModeOf(Consistency::Mode::ssp);
  ssp.set_slack(4);
  SetMode(scaler, ssp);
  SetMode(scaler, ModeOf(Consistency::Mode::sync));
  Rule expected = WithMost(Rule::Ssp(3, 4), 8);
  expected.in_flight = 7;
  EXPECT_THAT(applied_, ElementsAre(expected, WithMost(Rule::Sync(3), 8)));

  Rule delayed = WithMost(Rule::Sync(3), 8);
  delayed.in_flight = 1;
  Scaler other = Make(delayed);
  SetMode(other, ModeOf(Consistency::Mode::backup));
  EXPECT_EQ(applied_.back().in_flight, 1u);
}

TEST_F(ScalerTest, AModeThatTheJobCannotHaveIsRefused) {
  Scaler scaler = Make(WithMost(Rule::Sync(3), 8), 2);
  refused_mode_ = "async";
  SetMode(scaler, ModeOf(Consistency::Mode::async));
  EXPECT_EQ(mode_reply_->status(), absl::InvalidArgumentError("mode: not in this job"));
  Consistency settings = ModeOf(Consistency::Mode::backup);
  settings.set_backup(3);
  SetMode(scaler, settings);
  EXPECT_EQ(mode_reply_->status(),
            absl::InvalidArgumentError("backup: out of range (expected below 3, the value of "
                                       "workers, got 3)"));
  EXPECT_THAT(peers_.asked(), IsEmpty());
  EXPECT_THAT(applied_, IsEmpty());
}

TEST_F(ScalerTest, AfterARefusalAllServersKeepTheEarlierMode) {
  Scaler scaler = Make(WithMost(Rule::Sync(3), 8), 2);
  SetMode(scaler, ModeOf(Consistency::Mode::async));
  peers_.Answer(absl::UnavailableError("refused"));
  EXPECT_EQ(mode_reply_->status(), absl::UnavailableError("server 1 (there): refused"));
  EXPECT_EQ(peers_.newest().consistency().mode(), Consistency::Mode::sync);
  EXPECT_EQ(peers_.newest().step(), 0u);
  SetMode(scaler, ModeOf(Consistency::Mode::async));
  EXPECT_EQ(mode_reply_->status().code(), absl::StatusCode::kUnavailable) << "not complete";
  EXPECT_THAT(applied_, IsEmpty());
}

TEST_F(ScalerTest, AfterARefusalTheEarlierModeIsPassedOnUntilAllServersHaveIt) {
  Scaler scaler = Make(WithMost(Rule::Sync(3), 8), 3);
  SetMode(scaler, ModeOf(Consistency::Mode::async));
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::UnavailableError("refused"));
  for (int i = 0; i < 2; ++i) {
    peers_.Answer(absl::UnavailableError("refused"));
    peers_.Answer(absl::OkStatus());
    scaler.Tick(/*may_shrink=*/false);
    EXPECT_EQ(peers_.newest().consistency().mode(), Consistency::Mode::sync);
  }
  peers_.Answer(absl::OkStatus());
  peers_.Answer(absl::OkStatus());
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_THAT(peers_.asked(), ElementsAre(3, 3, 3, 3, 3, 3, 3, 3));
  EXPECT_THAT(applied_, IsEmpty());
}

TEST_F(ScalerTest, ALeadContinuesFromTheRuleThatItHasStored) {
  Scaler scaler = Make(WithMost(Rule::Async(3), 8), 2, /*change=*/50);
  SetMode(scaler, ModeOf(Consistency::Mode::ssp));
  EXPECT_FALSE(stored_.has_consistency()) << "server 1 may refuse the rule";
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(stored_.DebugString(), peers_.newest().DebugString());

  Scaler next = Make(WithMost(Rule::Async(3), 8), 2, /*change=*/100);
  EXPECT_EQ(next.Restore(stored_, Step{50}), absl::OkStatus());
  EXPECT_EQ(next.rule(), WithMost(Rule::Ssp(3, 0, 1), 8));
  ASSERT_TRUE(next.Resume().ok());
  next.Tick(/*may_shrink=*/false);
  EXPECT_EQ(peers_.newest().step(), 50u) << "the servers have gone back together";
  EXPECT_EQ(peers_.newest().change(), 101u);
  stored_.mutable_consistency()->set_workers(0);
  EXPECT_EQ(next.Restore(stored_, Step{}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ScalerTest, ARuleThatTheShardsHaveIsNotBegunAgain) {
  Scaler scaler = Make(WithMost(Rule::Sync(4), 8));
  EXPECT_EQ(scaler.Restore(Workers(4), Step{50}), absl::OkStatus());
  ASSERT_TRUE(scaler.Resume().ok());
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_EQ(from_, Step{});
}

TEST_F(ScalerTest, AReductionThatCannotBeStoredIsRefused) {
  Scaler scaler = Make(WithMost(Rule::Sync(4), 8));
  store_error_ = absl::ResourceExhaustedError("disk full");
  Scale(scaler, 2);
  EXPECT_EQ(reply_->status(), store_error_);
  EXPECT_EQ(scaler.target(), 4u);
}

TEST_F(ScalerTest, AStoredRuleKeepsTheReductionOfTheSameNumberOfWorkers) {
  for (const uint32_t workers : {4, 5}) {
    Scaler scaler = Make(WithMost(Rule::Sync(4), 8));
    scaler.RestoreReduction(2);
    EXPECT_EQ(scaler.Restore(Workers(workers), Step{}), absl::OkStatus());
    EXPECT_EQ(scaler.reduction(), workers == 4 ? 2u : 0u);
  }
}

TEST_F(ScalerTest, ARuleThatCannotBeStoredIsTakenBack) {
  Scaler scaler = Make(WithMost(Rule::Async(3), 8), 2);
  store_error_ = absl::ResourceExhaustedError("the disk is full");
  SetMode(scaler, ModeOf(Consistency::Mode::ssp));
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(mode_reply_->status(), store_error_);
  EXPECT_EQ(peers_.newest().consistency().mode(), Consistency::Mode::async);
  peers_.Answer(absl::OkStatus());
  store_error_ = absl::OkStatus();
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_EQ(peers_.newest().change(), 3u);
  peers_.Answer(absl::OkStatus());
  EXPECT_EQ(stored_.consistency().mode(), Consistency::Mode::async);
  EXPECT_THAT(applied_, IsEmpty());
}

TEST_F(ScalerTest, TheLeadRemindsTheOtherServersOfTheNewestRule) {
  Scaler scaler = Make(WithMost(Rule::Async(3), 8), 2, /*change=*/50);
  SetMode(scaler, ModeOf(Consistency::Mode::ssp));
  scaler.Remind();
  EXPECT_EQ(peers_.asked().size(), 1u) << "the change is not complete";
  const SetModeRequest change = peers_.newest();
  peers_.Answer(absl::OkStatus());
  scaler.Remind();
  EXPECT_EQ(peers_.asked().size(), 2u);
  EXPECT_EQ(peers_.newest().DebugString(), change.DebugString());
  peers_.Answer(absl::UnavailableError("refused"));
  scaler.Tick(/*may_shrink=*/false);
  EXPECT_EQ(peers_.asked().size(), 2u) << "a reminder without a reply changes nothing";
}

TEST_F(ScalerTest, TheLeadAdjustsARuleAtAnAnnouncedStep) {
  const Rule sync = WithMost(Rule::Sync(4), 8);
  Scaler scaler = Make(sync, 2);
  scaler.Adjust(sync, WithMost(Rule::Backup(4, 1), 8), "a reason");
  scaler.Adjust(sync, WithMost(Rule::Backup(4, 2), 8), "another change is not complete");
  EXPECT_EQ(peers_.newest().consistency().backup(), 1u);
  EXPECT_EQ(peers_.newest().step(), 40u);
  peers_.Answer(absl::OkStatus());
  EXPECT_THAT(applied_, ElementsAre(WithMost(Rule::Backup(4, 1), 8)));
  EXPECT_EQ(from_, Step{40});
}

TEST_F(ScalerTest, ARuleThatIsNotTheNewestIsNotAdjusted) {
  const Rule sync = WithMost(Rule::Sync(4), 8);
  Scaler scaler = Make(sync);
  scaler.Adjust(WithMost(Rule::Sync(3), 8), WithMost(Rule::Backup(3, 1), 8),
                "the number of workers has changed meanwhile");
  Scale(scaler, 3);
  scaler.Adjust(sync, WithMost(Rule::Backup(4, 1), 8), "a reduction is not complete");
  EXPECT_THAT(applied_, IsEmpty());
}

}  // namespace
}  // namespace thinwire
