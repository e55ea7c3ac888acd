#include "server/protocols/checkpoints/rollback_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

constexpr RunId kRun{7};

ServerCheckpoints Serving(uint64_t generation, std::vector<Step> steps) {
  return {.run = kRun, .generation = {generation}, .awaits_rollback = false, .steps = steps};
}

ServerCheckpoints Awaiting(uint64_t generation, std::vector<Step> steps) {
  return {.run = kRun, .generation = {generation}, .awaits_rollback = true, .steps = steps};
}

std::optional<RollbackOrder> Plan(const std::vector<std::optional<ServerCheckpoints>>& servers,
                                  bool settled = false) {
  const auto plan = PlanRollback(servers, settled);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(std::nullopt);
}

std::string ErrorOf(const std::vector<std::optional<ServerCheckpoints>>& servers) {
  const absl::Status status = PlanRollback(servers, /*settled=*/false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(RollbackPlanTest, ServersThatServeHaveNothingToDo) {
  EXPECT_EQ(Plan({Serving(1, {{0}, {8}})}), std::nullopt);
  EXPECT_EQ(Plan({Serving(2, {{8}}), Serving(2, {}), Serving(2, {{0}})}), std::nullopt);
}

TEST(RollbackPlanTest, AnUnreachableServerIsWaitedFor) {
  EXPECT_EQ(Plan({Awaiting(1, {{8}}), std::nullopt}), std::nullopt);
  EXPECT_EQ(Plan({Serving(2, {{8}}), std::nullopt, Awaiting(1, {{8}})}), std::nullopt);
}

TEST(RollbackPlanTest, TheLeadGoesBackFirstToTheNewestCommonStep) {
  const RollbackOrder expected = {{ServerId{0}}, Generation{2}, Step{8}};
  EXPECT_EQ(Plan({Serving(1, {{0}, {8}, {16}}), Awaiting(1, {{0}, {8}})}), expected);
  EXPECT_EQ(Plan({Awaiting(1, {{4}, {8}}), Serving(1, {{0}, {8}, {16}})}), expected);
  EXPECT_EQ(Plan({Awaiting(1, {{4}, {8}}), Awaiting(1, {{8}}), Serving(1, {{8}, {16}})}), expected);
  EXPECT_EQ(Plan({Awaiting(1, {{4}, {8}})}), expected);
}

TEST(RollbackPlanTest, AServerThatForgotAReturnInMemoryTakesASettledLeadBack) {
  const std::vector<std::optional<ServerCheckpoints>> servers = {
      Serving(4, {{0}, {8}}), Awaiting(2, {{8}}), Serving(4, {{8}})};
  EXPECT_EQ(Plan(servers, /*settled=*/true),
            (RollbackOrder{{ServerId{0}}, Generation{5}, Step{8}}));
  EXPECT_EQ(Plan(servers, /*settled=*/false),
            (RollbackOrder{{ServerId{1}}, Generation{4}, Step{8}}));
}

TEST(RollbackPlanTest, ServersOfAnOlderGenerationFollowTheLead) {
  const RollbackOrder expected = {{ServerId{1}, ServerId{3}}, Generation{4}, Step{8}};
  EXPECT_EQ(Plan({Serving(4, {{0}, {8}}), Awaiting(3, {{8}, {16}}), Serving(4, {{8}}),
                  Serving(2, {{8}, {24}})}),
            expected);
}

// The lead was started again after its own rollback, before another server has followed it.
TEST(RollbackPlanTest, AServerOfAnOlderGenerationFollowsBeforeANewRollback) {
  const RollbackOrder expected = {{ServerId{1}}, Generation{2}, Step{8}};
  EXPECT_EQ(Plan({Awaiting(2, {{0}, {8}}), Serving(1, {{0}, {8}, {16}})}), expected);
  const RollbackOrder next = {{ServerId{0}}, Generation{3}, Step{8}};
  EXPECT_EQ(Plan({Awaiting(2, {{0}, {8}}), Serving(2, {{0}, {8}})}), next);
}

TEST(RollbackPlanTest, NoCommonStepEndsTheJob) {
  EXPECT_EQ(
      ErrorOf({Awaiting(1, {{8}, {16}}), Serving(1, {{0}}), Serving(1, {})}),
      "rollback: the servers have no checkpoint of the same step (expected a common step, got "
      "server 0: 8, 16; server 1: 0; server 2: none)");
}

// The lead was killed while server 1 wrote its first checkpoint.
TEST(RollbackPlanTest, ACheckpointThatIsBeingWrittenIsWaitedFor) {
  ServerCheckpoints writing = Serving(1, {});
  writing.writing = true;
  EXPECT_EQ(Plan({Awaiting(1, {{0}}), writing}), std::nullopt);
}

TEST(RollbackPlanTest, ALostStateEndsAJobThatWaits) {
  ServerCheckpoints lost = Serving(1, {});
  lost.run = RunId{};
  EXPECT_THAT(ErrorOf({Awaiting(1, {{8}}), lost}), HasSubstr("server 1 lost its state"));
  // Without a server that waits, the next Join reports it.
  EXPECT_EQ(Plan({Serving(1, {{8}}), lost}), std::nullopt);
}

TEST(RollbackPlanTest, AServerOfANewerGenerationEndsTheJobOfAnOlderLead) {
  EXPECT_THAT(ErrorOf({Serving(1, {{8}}), Serving(2, {{8}})}),
              HasSubstr("server 1 is in a newer generation than server 0"));
}

}  // namespace
}  // namespace thinwire
