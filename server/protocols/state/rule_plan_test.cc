#include "server/protocols/state/rule_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

using Mode = Consistency::Mode;

Consistency Settings(Mode::Value mode) {
  Consistency settings;
  settings.set_mode(mode);
  return settings;
}

void ExpectInvalid(const absl::Status& status, const std::string& text) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), text)) << status;
}

TEST(RulePlanTest, TheSettingsOfARuleGiveTheRule) {
  Rule in_flight = Rule::Ssp(3, /*slack=*/4);
  in_flight.in_flight = 2;
  Rule delayed = Rule::Sync(3);
  delayed.in_flight = 1;
  for (const Rule& rule :
       {Rule::Sync(3), Rule::Sync(3, /*ordered_fold=*/true), delayed, Rule::Backup(4, 1),
        Rule::Ssp(3, /*slack=*/2, /*fold_every=*/5), in_flight, Rule::Async(3, 4)}) {
    const absl::StatusOr<Rule> read = RulePlan(rule, {}).RuleFor(ConsistencyOf(rule));
    ASSERT_TRUE(read.ok()) << rule << read.status();
    EXPECT_EQ(*read, rule);
  }
}

TEST(RulePlanTest, AnotherNumberOfWorkersKeepsTheBackupWorkers) {
  Rule first = Rule::Backup(4, 1);
  first.max_workers = 6;
  const RulePlan plan(first, {});
  Rule expected = first;
  expected.workers = 6;
  expected.quorum = 5;
  EXPECT_EQ(plan.RuleFor(6).value(), expected);
  ExpectInvalid(plan.RuleFor(1).status(), "workers: out of range (expected 2 to 6");
  ExpectInvalid(plan.RuleFor(7).status(), "got 7)");
}

TEST(RulePlanTest, InAsyncOneWorkerMayStay) {
  const RulePlan plan(Rule::Async(4), {});
  const Rule rule = plan.RuleFor(1).value();
  EXPECT_EQ(rule.workers, 1u);
  EXPECT_EQ(rule.quorum, 0u);
  ExpectInvalid(plan.RuleFor(0).status(), "expected 1 to 4");
}

TEST(RulePlanTest, AnotherModeMustFitTheNumberOfWorkersThatStays) {
  RulePlan plan(Rule::Sync(4), {});
  Consistency backup = Settings(Mode::backup);
  backup.set_backup(1);
  plan.set_target(1);
  EXPECT_EQ(plan.reduction(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(plan.RuleForMode(backup).status()));
  plan.set_target(2);
  EXPECT_EQ(plan.RuleForMode(backup).value(), Rule::Backup(4, 1));
}

// The checkpoints of the two kinds of modes are made in different ways.
TEST(RulePlanTest, WithCheckpointsAloneTheModeKeepsItsKind) {
  const RulePlan sync(Rule::Sync(2), {.keeps_only_checkpoints = true});
  Consistency backup = Settings(Mode::backup);
  backup.set_backup(1);
  EXPECT_TRUE(sync.RuleForMode(backup).ok());
  ExpectInvalid(sync.RuleForMode(Settings(Mode::async)).status(),
                "durability: checkpoint (expected sync or backup, got async)");
  const RulePlan async(Rule::Async(2), {.keeps_only_checkpoints = true});
  EXPECT_TRUE(async.RuleForMode(Settings(Mode::ssp)).ok());
  ExpectInvalid(async.RuleForMode(Settings(Mode::sync)).status(),
                "durability: checkpoint (expected ssp or async, got sync)");
}

TEST(RulePlanTest, AdaptivePushesStayInSync) {
  const RulePlan plan(Rule::Sync(2), {.adaptive = true});
  EXPECT_TRUE(plan.RuleForMode(Settings(Mode::sync)).ok());
  ExpectInvalid(plan.RuleForMode(Settings(Mode::ssp)).status(),
                "push: adaptive (expected sync, got ssp)");
}

TEST(RulePlanTest, ASiteKeepsAModeWithRounds) {
  const RulePlan plan(Rule::Sync(2), {.relays = true});
  EXPECT_TRUE(plan.RuleForMode(Settings(Mode::backup)).ok());
  ExpectInvalid(plan.RuleForMode(Settings(Mode::async)).status(),
                "mode: not possible in a site (expected sync or backup, got async)");
}

TEST(RulePlanTest, ALaterRequestThanTheCheckpointBeginsNoEarlierThanTheWorkersAllow) {
  RulePlan plan(Rule::Ssp(3, 1), {});
  SetModeRequest request;
  *request.mutable_consistency() = ConsistencyOf(Rule::Ssp(3, 2));
  request.set_step(4);
  ASSERT_TRUE(plan.Restore(request, Step{10}).ok());
  EXPECT_EQ(plan.rule(), Rule::Ssp(3, 2));
  EXPECT_EQ(plan.newest().from, Step{10});
  // The checkpoint has the rule already.
  ASSERT_TRUE(plan.Restore(request, Step{20}).ok());
  EXPECT_EQ(plan.newest().from, Step{4});
}

TEST(RulePlanTest, ARequestOfOtherWorkersEndsAReduction) {
  RulePlan plan(Rule::Async(3), {});
  SetModeRequest request;
  *request.mutable_consistency() = ConsistencyOf(Rule::Ssp(3, 2));
  plan.RestoreReduction(1);
  ASSERT_TRUE(plan.Restore(request, Step{}).ok());
  EXPECT_EQ(plan.reduction(), 1u);
  request.mutable_consistency()->set_workers(2);
  ASSERT_TRUE(plan.Restore(request, Step{}).ok());
  EXPECT_EQ(plan.rule().workers, 2u);
  EXPECT_EQ(plan.reduction(), 0u);
}

TEST(RulePlanTest, ARuleOfMoreWorkersRaisesTheTarget) {
  RulePlan plan(Rule::Async(3), {});
  plan.set_target(2);
  plan.Follow({Rule::Ssp(3, 1), Step{5}});
  EXPECT_EQ(plan.target(), 2u);
  plan.Follow({Rule::Ssp(4, 1), Step{6}});
  EXPECT_EQ(plan.target(), 4u);
  EXPECT_EQ(plan.newest().from, Step{6});
}

}  // namespace
}  // namespace thinwire
