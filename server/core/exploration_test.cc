// Explores all states of small clusters (testing/exploration.h). The sizes of the explorations keep
// the test below a minute on a busy machine.
#include "server/core/testing/exploration.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

namespace thinwire {
namespace {

// The cluster begins without workers, and trains one step.
ExplorationOptions Starting(const Rule& rule, const FaultBudget& faults) {
  return {.rule = rule, .step_count = 1, .faults = faults};
}

// The cluster begins with workers that compute step 0, and trains two steps.
ExplorationOptions Training(const Rule& rule, const FaultBudget& faults) {
  return {.rule = rule, .step_count = 2, .faults = faults, .joined = true};
}

// Explores a cluster and expects at least LEAST_STATES states.
void Explore(const ExplorationOptions& options, size_t least_states) {
  Exploration exploration(options);
  EXPECT_EQ(exploration.Run(), "");
  std::cout << exploration.state_count() << " states, " << exploration.edge_count() << " actions, "
            << exploration.final_count()
            << " final states; of a shard: " << exploration.shard_states().state_count()
            << " states, " << exploration.shard_states().transition_count() << " transitions"
            << std::endl;
  EXPECT_GE(exploration.state_count(), least_states);
  EXPECT_GT(exploration.final_count(), 0);
}

TEST(ExplorationTest, SyncSurvivesACrashDuringTheStart) {
  Explore(Starting(Rule::Sync(3), {.crashes = 1}), 170000);
}

TEST(ExplorationTest, SyncSurvivesACrashAndARepeatedMessage) {
  Explore(Training(Rule::Sync(3), {.crashes = 1, .repeats = 1}), 200000);
}

TEST(ExplorationTest, SyncSurvivesALostReplyAndAnExpiredLease) {
  Explore(Training(Rule::Sync(3), {.losses = 1, .expiries = 1}), 95000);
}

TEST(ExplorationTest, OrderedSyncSurvivesACrash) {
  Explore(Training(Rule::Sync(3, /*ordered_fold=*/true), {.crashes = 1}), 50000);
}

TEST(ExplorationTest, BackupSurvivesACrashDuringTheStart) {
  Explore(Starting(Rule::Backup(3, 1), {.crashes = 1}), 165000);
}

TEST(ExplorationTest, BackupSurvivesACrash) {
  Explore(Training(Rule::Backup(3, 1), {.crashes = 1}), 250000);
}

TEST(ExplorationTest, BackupSurvivesALostReplyAndARepeatedMessage) {
  Explore(Training(Rule::Backup(3, 1), {.losses = 1, .repeats = 1}), 200000);
}

TEST(ExplorationTest, BackupSurvivesAnExpiredLease) {
  Explore(Training(Rule::Backup(3, 1), {.expiries = 1}), 55000);
}

TEST(ExplorationTest, SspSurvivesACrashDuringTheStart) {
  Explore(Starting(Rule::Ssp(3, 1), {.crashes = 1}), 135000);
}

TEST(ExplorationTest, SspSurvivesACrash) {
  Explore(Training(Rule::Ssp(3, 1), {.crashes = 1}), 90000);
}

TEST(ExplorationTest, SspSurvivesALostReplyAndAnExpiredLease) {
  Explore(Training(Rule::Ssp(3, 1), {.losses = 1, .expiries = 1}), 135000);
}

TEST(ExplorationTest, AsyncSurvivesACrashAndARepeatedMessage) {
  Explore(Training(Rule::Async(3), {.crashes = 1, .repeats = 1}), 240000);
}

TEST(ExplorationTest, SyncSurvivesTheEndOfAServer) {
  Explore(Training(Rule::Sync(3), {.servers = 1}), 39000);
}

TEST(ExplorationTest, BackupSurvivesTheEndOfAServer) {
  Explore(Training(Rule::Backup(3, 1), {.servers = 1}), 310000);
}

TEST(ExplorationTest, SyncSurvivesTheEndOfAServerDuringTheStart) {
  Explore(Starting(Rule::Sync(3), {.servers = 1}), 30000);
}

TEST(ExplorationTest, SspSurvivesTheEndOfAServer) {
  Explore(Training(Rule::Ssp(3, 1), {.servers = 1}), 70000);
}

TEST(ExplorationTest, StoppedWorkersLeaveTheShardsOfSyncAtTheSameStep) {
  Explore(Training(Rule::Sync(3), {.stops = 3}), 1000);
}

TEST(ExplorationTest, StoppedWorkersLeaveTheShardsOfBackupAtTheSameStep) {
  Explore(Training(Rule::Backup(3, 1), {.stops = 3}), 1000);
}

// A full round waits until the sums over both shards are known.
ExplorationOptions Summing(const Rule& rule, const FaultBudget& faults) {
  ExplorationOptions options = Training(rule, faults);
  options.sums = true;
  return options;
}

TEST(ExplorationTest, SumsSurviveACrash) {
  Explore(Summing(Rule::Sync(3), {.crashes = 1}), 290000);
}

TEST(ExplorationTest, SumsSurviveAnExpiredLease) {
  Explore(Summing(Rule::Sync(3), {.expiries = 1}), 53000);
}

TEST(ExplorationTest, SumsOfBackupSurviveAnExpiredLease) {
  Explore(Summing(Rule::Backup(3, 1), {.expiries = 1}), 53000);
}

// Each shard changes from one rule to another at step 1, or later if the event arrives late.
ExplorationOptions Changing(const Rule& rule, const Rule& to, const FaultBudget& faults = {}) {
  ExplorationOptions options = Training(rule, faults);
  options.change = RuleEvent{to, Step{1}};
  return options;
}

TEST(ExplorationTest, SyncChangesToAsync) {
  Explore(Changing(Rule::Sync(3), Rule::Async(3)), 7000);
}

TEST(ExplorationTest, AsyncChangesToSync) {
  Explore(Changing(Rule::Async(3), Rule::Sync(3)), 30000);
}

TEST(ExplorationTest, AsyncChangesToBackup) {
  Explore(Changing(Rule::Async(3), Rule::Backup(3, 1)), 33000);
}

TEST(ExplorationTest, BackupChangesToSsp) {
  Explore(Changing(Rule::Backup(3, 1), Rule::Ssp(3, 1)), 110000);
}

TEST(ExplorationTest, SspChangesToSync) {
  Explore(Changing(Rule::Ssp(3, 1), Rule::Sync(3)), 35000);
}

TEST(ExplorationTest, AChangeSurvivesACrash) {
  Explore(Changing(Rule::Sync(3), Rule::Async(3), {.crashes = 1}), 480000);
}

TEST(ExplorationTest, AChangeSurvivesAnExpiredLease) {
  Explore(Changing(Rule::Async(3), Rule::Sync(3), {.expiries = 1}), 340000);
}

TEST(ExplorationTest, AChangeSurvivesALostReply) {
  Explore(Changing(Rule::Ssp(3, 1), Rule::Sync(3), {.losses = 1}), 230000);
}

TEST(ExplorationTest, AChangeSurvivesTheEndOfAServer) {
  Explore(Changing(Rule::Sync(3), Rule::Async(3), {.servers = 1}), 270000);
}

TEST(ExplorationTest, AVerdictThatLeavesBeforeItsCommitIsFound) {
  ExplorationOptions options = Training(Rule::Backup(3, 1), {.servers = 1});
  options.sent_before_commit = true;
  const std::string violation = Exploration(options).Run();
  EXPECT_EQ(violation.find("an acknowledged push is lost after"), 0u) << violation;
}

}  // namespace
}  // namespace thinwire
