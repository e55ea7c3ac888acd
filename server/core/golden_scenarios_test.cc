// Tests examples of the consistency rule (docs/consistency.md): sequences of events with the
// expected effects, in the notation that testing/scenario.h defines.
#include <gtest/gtest.h>

#include "absl/strings/string_view.h"
#include "common/spec/rule.h"
#include "common/spec/staleness_spec.h"
#include "server/core/testing/scenario.h"

namespace thinwire {
namespace {

void ExpectEffects(const Rule& rule, absl::string_view scenario,
                   const StalenessSpec& staleness = {}) {
  EXPECT_EQ(RunScenario(rule, scenario, staleness), Normalize(scenario));
}

TEST(SyncScenario, EveryStepWaitsForEveryWorker) {
  ExpectEffects(Rule::Sync(2), R"(
    w0 join          -> shut at 0
    w0 read 0        -> nothing
    seed 10          -> nothing
    waits            -> w0 for 0: 1 of 2
    w1 join          -> shut at 0
    w1 read 0        -> opens; w0 begins 0; w1 begins 0
    w1 push 0 x1 6   -> accept
    waits            -> w1 for 1: w0
    w0 push 0 x3 2   -> accept; round 0 of w0 w1; version 1 is 7; w0 begins 1; w1 begins 1
  )");
}

TEST(ChangedMode, TheRoundBeforeTheChangeClosesByTheOldRule) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0              -> opens; w0 begins 0; w1 begins 0
    rule async from 1    -> nothing
    w0 push 0 x1 4       -> accept
    w1 push 0 x1 2       -> accept; round 0 of w0 w1; version 1 is -3; w0 begins 1; w1 begins 1
    w0 push 1 x1 1       -> accept; version 2 is -4; w0 begins 2
    w0 push 2 x1 1       -> accept; version 3 is -5; w0 begins 3
  )");
}

TEST(ChangedMode, NoWorkerBeginsTheStepOfTheChangeBeforeTheSlowestHasReachedIt) {
  ExpectEffects(Rule::Async(2), R"(
    start 0              -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1       -> accept; version 1 is -1; w0 begins 1
    rule sync from 3     -> nothing
    w0 push 1 x1 1       -> accept; version 2 is -2; w0 begins 2
    w0 push 2 x1 1       -> accept; version 3 is -3
    waits                -> w0 for 3: w1
    w1 push 0 x1 1       -> accept; version 4 is -4; w1 begins 1
    w1 push 1 x1 1       -> accept; version 5 is -5; w1 begins 2
    w1 push 2 x1 1       -> accept; version 6 is -6; w0 begins 3; w1 begins 3
    w0 push 3 x1 2       -> accept
    w1 push 3 x1 4       -> accept; round 3 of w0 w1; version 7 is -9; w0 begins 4; w1 begins 4
  )");
}

TEST(ChangedMode, AStepThatHasBegunDelaysTheChange) {
  ExpectEffects(Rule::Ssp(2, 2), R"(
    start 0              -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1       -> accept; version 1 is -1; w0 begins 1
    w0 push 1 x1 1       -> accept; version 2 is -2; w0 begins 2
    rule sync from 1     -> nothing
    w1 push 0 x1 1       -> accept; version 3 is -3; w1 begins 1
    w1 push 1 x1 1       -> accept; version 4 is -4; w1 begins 2
    w0 push 2 x1 1       -> accept; version 5 is -5
    w1 push 2 x1 1       -> accept; version 6 is -6; w0 begins 3; w1 begins 3
    w1 push 3 x1 2       -> accept
    w0 push 3 x1 4       -> accept; round 3 of w0 w1; version 7 is -9; w0 begins 4; w1 begins 4
  )");
}

TEST(ChangedMode, AcceptedGradientsBecomeAnUpdateAtTheChange) {
  ExpectEffects(Rule::Async(2, 4), R"(
    start 0              -> opens; w0 begins 0; w1 begins 0
    rule backup 1 from 1 -> nothing
    w0 push 0 x1 4       -> accept
    w1 push 0 x3 8       -> accept; version 1 is -7; w0 begins 1; w1 begins 1
    w1 push 1 x1 1       -> accept; round 1 of w1; version 2 is -8; w1 begins 2
    w0 push 1 x1 1       -> late; w0 begins 2
  )");
}

TEST(ChangedMode, AShutShardChangesAtOnce) {
  ExpectEffects(Rule::Sync(2), R"(
    rule async from 9    -> nothing
    start 0              -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 4       -> accept; version 1 is -4; w0 begins 1
  )");
}

TEST(ChangedMode, ANewerRuleReplacesOneThatIsNotInForce) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0              -> opens; w0 begins 0; w1 begins 0
    rule async from 1    -> nothing
    rule backup 1 from 0 -> nothing
    w1 push 0 x1 2       -> accept; round 0 of w1; version 1 is -2; w1 begins 1
    w1 push 1 x1 2       -> accept; round 1 of w1; version 2 is -4; w1 begins 2
  )");
}

TEST(SyncScenario, OpensWithTheLiveWorkersAfterTheStartTimeout) {
  ExpectEffects(Rule::Sync(3), R"(
    open             -> nothing
    w1 join          -> shut at 0
    w1 read 0        -> nothing
    waits            -> w1 for 0: 1 of 1 unseeded
    seed 0           -> opens; w1 begins 0
    w0 join          -> open at 0
    w0 read 1        -> nothing
    w1 push 0 x1 1   -> accept; round 0 of w1; version 1 is -1; w0 begins 1; w1 begins 1
  )");
}

TEST(SyncScenario, WaitsForACrashedWorkerUntilItsLeaseEnds) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 4   -> accept
    waits            -> w0 for 1: w1
    w1 expire        -> round 0 of w0; version 1 is -4; w0 begins 1
    w1 push 0 x1 8   -> late; w1 begins 1
    w0 push 1 x1 4   -> accept
    w1 push 1 x1 8   -> accept; round 1 of w0 w1; version 2 is -10; w0 begins 2; w1 begins 2
  )");
}

TEST(SyncScenario, AWaitingReadOutlivesItsWorkersLease) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 4   -> accept
    w0 expire        -> nothing
    w1 push 0 x1 8   -> accept; round 0 of w0 w1; version 1 is -6; w0 begins 1; w1 begins 1
    w0 return        -> nothing
    w1 push 1 x1 1   -> accept
    waits            -> w1 for 2: w0
  )");
}

TEST(SyncScenario, ANewProcessHoldsNoOpenRound) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 2   -> accept
    w1 join          -> open at 1; round 0 of w0; version 1 is -2; w0 begins 1
    waits            -> nothing
    w1/1 push 0 x1 9 -> fenced
    w1 read 2        -> nothing
    w0 push 1 x1 2   -> accept; round 1 of w0; version 2 is -4; w0 begins 2; w1 begins 2
  )");
}

TEST(SyncScenario, ANewProcessKeepsAcceptedGradientsAndDropsTheWaitingRead) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w1 push 0 x1 6   -> accept
    waits            -> w1 for 1: w0
    w1 join          -> open at 0
    waits            -> nothing
    w0 push 0 x1 2   -> accept; round 0 of w0 w1; version 1 is -4; w0 begins 1
  )");
}

TEST(SyncScenario, ARepeatedPushGetsItsVerdictAgain) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 2   -> accept
    w0 push 0 x1 2   -> accept again
    w1 push 0 x1 2   -> accept; round 0 of w0 w1; version 1 is -2; w0 begins 1; w1 begins 1
    w1 push 0 x1 2   -> accept again; w1 begins 1
    w1 read 1        -> w1 begins 1
    w1 push 1 x1 6   -> accept
    w1 push 0 x1 2   -> accept again
  )");
}

TEST(SyncScenario, TheLastLiveWorkerClosesTheOpenRound) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 4   -> accept
    w0 leave         -> nothing
    w1 leave         -> round 0 of w0; version 1 is -4
    w1 join          -> open at 1
    w1 read 2        -> round 1 of nobody; w1 begins 2
  )");
}

TEST(SyncScenario, APushOfWeightZeroFinishesTheStep) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 nothing -> accept
    w1 push 0 x2 3    -> accept; round 0 of w1; version 1 is -3; w0 begins 1; w1 begins 1
    w0 push 1 nothing -> accept
    w1 push 1 nothing -> accept; round 1 of nobody; w0 begins 2; w1 begins 2
  )");
}

TEST(SyncScenario, Promise7ANonFiniteGradientIsRefusedAndTheRoundCloses) {
  ExpectEffects(Rule::Sync(2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 nan -> refused
    w0 push 0 x1 nan -> refused again
    w1 push 0 x2 3   -> accept; round 0 of w1; version 1 is -3; w0 begins 1; w1 begins 1
  )");
}

TEST(BackupScenario, TheRoundClosesWithTheQuorumAndTheSlowWorkerIsLate) {
  ExpectEffects(Rule::Backup(3, 1), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0; w2 begins 0
    w2 push 0 x1 4   -> accept
    w0 push 0 x1 2   -> accept; round 0 of w0 w2; version 1 is -3; w0 begins 1; w2 begins 1
    w0 push 1 x1 2   -> accept
    w2 push 1 x1 2   -> accept; round 1 of w0 w2; version 2 is -5; w0 begins 2; w2 begins 2
    w1 push 0 x1 9   -> late; w1 begins 1
    w1 push 0 x1 9   -> late again; w1 begins 1
    w1 read 2        -> w1 begins 2
    w1 push 2 x1+1 8 -> accept
    w0 push 2 x1 1   -> accept; round 2 of w0 w1; version 3 is -8; w0 begins 3; w1 begins 3
  )");
}

TEST(BackupScenario, FewerThanTheQuorumCloseTheRoundIfNoOtherWorkerIsLive) {
  ExpectEffects(Rule::Backup(3, 1), R"(
    seed 0           -> nothing
    open             -> nothing
    w0 join          -> shut at 0
    w0 read 0        -> opens; w0 begins 0
    w0 push 0 x1 2   -> accept; round 0 of w0; version 1 is -2; w0 begins 1
  )");
}

// "up to": the last step that the worker may compute before another read is answered.
TEST(SspScenario, AWorkerMayComputeAheadOfItsReadsUpToTheBound) {
  Rule rule = Rule::Ssp(2, 2);
  rule.in_flight = 4;
  ExpectEffects(rule, R"(
    start 0            -> opens; w0 begins 0 up to 2; w1 begins 0 up to 2
    w0 push 0 x1 1     -> accept; version 1 is -1; w0 begins 1 up to 2
    w0 push 1 x1 1     -> accept; version 2 is -2; w0 begins 2
    w0 push 2 x1 1     -> accept; version 3 is -3
    w0 push 1 x1 1     -> accept again
    w1 push 0 x1 1     -> accept; version 4 is -4; w0 begins 3; w1 begins 1 up to 3
    w0 push 4 x1 1     -> early
  )");
}

TEST(ChangedMode, NoAnswerLetsAWorkerComputeTheStepOfTheChange) {
  Rule rule = Rule::Async(2);
  rule.in_flight = 3;
  ExpectEffects(rule, R"(
    start 0            -> opens; w0 begins 0 up to 3; w1 begins 0 up to 3
    w0 push 0 x1 1     -> accept; version 1 is -1; w0 begins 1 up to 4
    rule sync from 2   -> nothing
    w0 push 1 x1 1     -> accept; version 2 is -2; w0 begins 2 up to 4
    w0 push 2 x1 1     -> accept; version 3 is -3; w0 begins 3 up to 4
    w0 push 3 x1 1     -> accept; version 4 is -4; w0 begins 4
    w0 push 4 x1 1     -> accept; version 5 is -5
    waits              -> w0 for 5: w1
    w1 read 5          -> w0 begins 5; w1 begins 5
  )");
}

TEST(SyncScenario, ADelayedWorkerComputesOneStepAheadAndHoldsItsPush) {
  Rule rule = Rule::Sync(2);
  rule.in_flight = 1;
  ExpectEffects(rule, R"(
    start 0            -> opens; w0 begins 0 up to 1, held; w1 begins 0 up to 1, held
    w0 push 0 x1 2     -> accept
    w0 push 1 x1 2     -> early
    w1 push 0 x1 4     -> accept; round 0 of w0 w1; version 1 is -3; w0 begins 1 up to 2, held; w1 begins 1 up to 2, held
    w0 push 1 x1 2 from 0 -> accept
  )");
}

TEST(SspScenario, TheFastestWorkerWaitsAtTheBound) {
  ExpectEffects(Rule::Ssp(2, 1), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1   -> accept; version 1 is -1; w0 begins 1
    w0 push 1 x1 1   -> accept; version 2 is -2
    waits            -> w0 for 2: w1
    w0 push 2 x1 1   -> early
    w1 push 0 x1 1   -> accept; version 3 is -3; w0 begins 2; w1 begins 1
  )");
}

TEST(SspScenario, AMovingFrontierUpdatesBeforeItReleasesReads) {
  ExpectEffects(Rule::Ssp(2, 0, 3), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1   -> accept
    w1 push 0 x1 3   -> accept; version 1 is -2; w0 begins 1; w1 begins 1
  )");
}

TEST(SspScenario, TheLastLiveWorkerTriggersTheFinalUpdate) {
  ExpectEffects(Rule::Ssp(2, 3, 2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 5   -> accept; w0 begins 1
    w0 leave         -> nothing
    w1 expire        -> version 1 is -5
    w0 push 0 x1 5   -> fenced
  )");
}

TEST(AsyncScenario, NoWorkerWaits) {
  ExpectEffects(Rule::Async(2, 2), R"(
    start 0          -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1   -> accept; w0 begins 1
    w0 push 1 x1 3   -> accept; version 1 is -2; w0 begins 2
    w0 push 2 x1 3   -> accept; w0 begins 3
    w1 push 0 x1 5   -> accept; version 2 is -6; w1 begins 1
  )");
}

TEST(StalenessScenario, DropRefusesAGradientThatIsTooStale) {
  ExpectEffects(Rule::Async(2), R"(
    start 0                  -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1 from 0    -> accept; version 1 is -1; w0 begins 1
    w0 push 1 x1 1 from 1    -> accept; version 2 is -2; w0 begins 2
    w1 push 0 x1 9 from 0    -> refused; w1 begins 1
    w1 push 0 x1 9 from 0    -> refused again; w1 begins 1
    w1 push 1 x1 3 from 1    -> accept; version 3 is -5; w1 begins 2
    w1 push 2 nothing        -> accept; w1 begins 3
  )",
                {.policy = StalenessPolicy::kDrop, .bound = 1});
}

TEST(StalenessScenario, ARefusedGradientMovesTheFrontier) {
  ExpectEffects(Rule::Ssp(2, 1), R"(
    start 0                  -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 1 from 0    -> accept; version 1 is -1; w0 begins 1
    w0 push 1 x1 1 from 1    -> accept; version 2 is -2
    w1 push 0 x1 9 from 0    -> refused; w0 begins 2; w1 begins 1
  )",
                {.policy = StalenessPolicy::kDrop, .bound = 1});
}

TEST(StalenessScenario, ScaleDividesAGradientByItsStaleness) {
  ExpectEffects(Rule::Async(2), R"(
    start 0                  -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 8 from 0    -> accept; version 1 is -8; w0 begins 1
    w0 push 1 x1 8 from 0    -> accept; version 2 is -16; w0 begins 2
    w1 push 0 x1 8 from 0    -> accept; version 3 is -20; w1 begins 1
    w0 push 2 x1 8 from 3    -> accept; version 4 is -28; w0 begins 3
    w1 push 1 x3 8 from 0    -> accept; version 5 is -30; w1 begins 2
  )",
                {.policy = StalenessPolicy::kScale});
}

// 4 + 0.5 * 4 * 4 * (-2 - 0) is -12, and 2 + 0.5 * 2 * 2 * (10 - -2) is 26.
TEST(StalenessScenario, DcasgdAddsTheChangeOfTheParametersTimesTheSquaredGradient) {
  ExpectEffects(Rule::Async(2), R"(
    start 0                  -> opens; w0 begins 0; w1 begins 0
    w0 push 0 x1 2 from 0    -> accept; version 1 is -2; w0 begins 1
    w1 push 0 x1 4 from 0    -> accept; version 2 is 10; w1 begins 1
    w0 push 1 x1 2 from 1    -> accept; version 3 is -16; w0 begins 2
    w1 push 1 x1 1 from 0    -> accept uncompensated; version 4 is -17; w1 begins 2
    w0 push 2 x1 1 from 4    -> accept; version 5 is -18; w0 begins 3
  )",
                {.policy = StalenessPolicy::kDcasgd, .lambda = 0.5});
}

}  // namespace
}  // namespace thinwire
