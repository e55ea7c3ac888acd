#include "cli/train/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Not;
using State = WorkerRow::State;

WorkerEvent Of(uint32_t worker) {
  WorkerEvent event;
  event.set_worker(worker);
  return event;
}

WorkerEvent Done(uint32_t worker, double median, double loss) {
  WorkerEvent event = Of(worker);
  WorkerEvent::Done& done = *event.mutable_done();
  done.set_steps(10 + worker);
  done.set_seconds(1);
  done.set_median_step_seconds(median);
  done.set_final_train_loss(loss);
  done.mutable_counters()->set_push_bytes_encoded(100);
  return event;
}

TEST(RunRecordTest, AWorkerStartsTrainsAndIsDone) {
  RunRecord record(2);
  EXPECT_EQ(record.CountOf(State::kStarting), 2);
  WorkerEvent joined = Of(1);
  joined.mutable_joined()->set_device("cpu");
  record.Apply(joined);
  EXPECT_EQ(record.workers()[1].state, State::kTraining);
  EXPECT_EQ(record.workers()[1].device, "cpu");
  record.Apply(Done(1, 0.1, 0.5));
  record.WorkerEnded(WorkerId{1}, ExitStatus{}, false);
  EXPECT_EQ(record.workers()[1].state, State::kDone);
  EXPECT_EQ(record.steps(), 11);
}

TEST(RunRecordTest, TheTestLossIsOfTheParametersOfTheTestAccuracy) {
  RunRecord record(2);
  EXPECT_EQ(record.test_loss(), std::nullopt);
  WorkerEvent epoch = Of(0);
  epoch.mutable_epoch()->set_test_accuracy(0.5);
  epoch.mutable_epoch()->set_test_loss(2);
  record.Apply(epoch);
  EXPECT_EQ(record.test_loss(), 2);
  WorkerEvent done = Done(0, 0.1, 0.5);
  done.mutable_done()->set_evaluator(true);
  done.mutable_done()->set_final_test_accuracy(0.75);
  done.mutable_done()->set_final_test_loss(1);
  record.Apply(done);
  EXPECT_EQ(record.test_loss(), 1);
}

TEST(RunRecordTest, ThePlannedStepsComeFromAWorker) {
  RunRecord record(2);
  EXPECT_EQ(record.planned_steps(), 0);
  WorkerEvent joined = Of(1);
  joined.mutable_joined()->set_planned_steps(938);
  record.Apply(joined);
  EXPECT_EQ(record.planned_steps(), 938);
  // The batch has grown.
  WorkerEvent step = Of(0);
  step.mutable_step()->set_planned_steps(700);
  record.Apply(step);
  EXPECT_EQ(record.planned_steps(), 700);
}

TEST(RunRecordTest, AKilledWorkerIsLostWithItsReason) {
  RunRecord record(2);
  record.WorkerEnded(WorkerId{0}, ExitStatus{.code = 0, .signal = 9}, false);
  WorkerEvent error = Of(1);
  error.mutable_error()->set_message("server 1 (127.0.0.1:5) is silent");
  record.Apply(error);
  record.WorkerEnded(WorkerId{1}, ExitStatus{.code = 69, .signal = 0}, false);
  EXPECT_EQ(record.CountOf(State::kLost), 2);
  EXPECT_EQ(record.workers()[0].reason, "killed by signal 9 (Killed)");
  EXPECT_EQ(record.workers()[1].reason, "exit code 69: server 1 (127.0.0.1:5) is silent");
}

TEST(RunRecordTest, AWorkerThatWasAskedToStopIsNotLost) {
  RunRecord record(1);
  record.WorkerEnded(WorkerId{0}, ExitStatus{.code = 75, .signal = 0}, true);
  EXPECT_EQ(record.workers()[0].state, State::kStopped);
}

TEST(RunRecordTest, AWorkerThatExitsWithoutDoneIsLostEvenWithCodeZero) {
  RunRecord record(1);
  record.WorkerEnded(WorkerId{0}, ExitStatus{}, false);
  EXPECT_EQ(record.workers()[0].state, State::kLost);
}

TEST(RunRecordTest, TotalsAreSumsAndTheMedianIsOfMedians) {
  RunRecord record(4);
  record.Apply(Done(0, 0.4, 1));
  record.Apply(Done(1, 0.1, 2));
  record.Apply(Done(2, 0.2, 3));
  EXPECT_DOUBLE_EQ(record.median_step_seconds(), 0.2);
  record.Apply(Done(3, 0.3, 4));
  EXPECT_DOUBLE_EQ(record.median_step_seconds(), 0.25);
  EXPECT_EQ(record.Totals().push_bytes_encoded(), 400);
  EXPECT_DOUBLE_EQ(*record.train_loss(), 2.5);
}

TEST(RunRecordTest, AStepReplacesTheCountersAndKeepsTheLastLoss) {
  RunRecord record(1);
  WorkerEvent event = Of(0);
  WorkerEvent::Step& step = *event.mutable_step();
  step.set_loss(0.5);
  step.set_loss_scale(1024);
  step.mutable_counters()->set_overflowed_steps(2);
  record.Apply(event);
  step.clear_loss();
  step.mutable_counters()->set_overflowed_steps(3);
  record.Apply(event);
  EXPECT_EQ(record.workers()[0].train_loss, 0.5);
  EXPECT_EQ(record.workers()[0].loss_scale, 1024);
  EXPECT_EQ(record.workers()[0].counters.overflowed_steps(), 3);
}

TEST(RunRecordTest, AnEpochsCountersAreTheSumOverItsWorkers) {
  RunRecord record(2);
  for (const uint32_t worker : {0, 1}) {
    WorkerEvent event = Of(worker);
    event.mutable_epoch()->set_epoch(3);
    event.mutable_epoch()->mutable_counters()->set_sent_bytes(100 + worker);
    event.mutable_epoch()->mutable_counters()->set_pull_bytes_raw(7);
    record.Apply(event);
  }
  EXPECT_EQ(record.epochs().at(3).counters.sent_bytes(), 201);
  EXPECT_EQ(record.epochs().at(3).counters.pull_bytes_raw(), 14);
}

TEST(RunRecordTest, AnEpochEndsWithItsLastWorker) {
  RunRecord record(3);
  for (const uint32_t worker : {0, 1, 2}) {
    WorkerEvent event = Of(worker);
    event.mutable_epoch()->set_seconds(worker == 1 ? 7.5 : 7);
    record.Apply(event);
  }
  EXPECT_EQ(record.epochs().at(0).seconds, 7.5);
}

TEST(RunRecordTest, AnEpochsLossIsTheMeanOverTheWorkersThatHaveOne) {
  RunRecord record(3);
  for (const uint32_t worker : {0, 1, 2}) {
    WorkerEvent event = Of(worker);
    event.mutable_epoch();
    // Worker 1 reports no loss, as a worker without examples in an epoch does.
    if (worker != 1) event.mutable_epoch()->set_train_loss(2 + worker);
    record.Apply(event);
  }
  EXPECT_DOUBLE_EQ(*record.epochs().at(0).train_loss, 3);
}

TEST(RunRecordTest, TheAccuracyIsTheEvaluatorsOrTheLastEpochs) {
  RunRecord record(2);
  EXPECT_FALSE(record.test_accuracy());
  for (uint32_t epoch : {0, 1}) {
    WorkerEvent event = Of(0);
    event.mutable_epoch()->set_epoch(epoch);
    event.mutable_epoch()->set_test_accuracy(0.5 + 0.1 * epoch);
    record.Apply(event);
    WorkerEvent other = Of(1);
    other.mutable_epoch()->set_epoch(epoch);
    record.Apply(other);
  }
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.6);
  WorkerEvent done = Done(0, 0.1, 1);
  done.mutable_done()->set_evaluator(true);
  done.mutable_done()->set_final_test_accuracy(0.9);
  record.Apply(done);
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.9);
  // Worker 0 has left the job, so worker 1 evaluates the final parameters after its last step.
  done.set_worker(1);
  done.mutable_done()->set_final_test_accuracy(0.91);
  record.Apply(done);
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.91);
}

TEST(RunRecordTest, ARunWithoutAccuracyHasTheLossOfItsNewestTest) {
  RunRecord record(1);
  for (uint32_t epoch : {0, 1}) {
    WorkerEvent event = Of(0);
    event.mutable_epoch()->set_epoch(epoch);
    event.mutable_epoch()->set_test_loss(0.5 - 0.25 * epoch);
    record.Apply(event);
  }
  EXPECT_EQ(record.test_loss(), 0.25);
  WorkerEvent done = Done(0, 0.1, 1);
  done.mutable_done()->set_evaluator(true);
  done.mutable_done()->set_final_test_loss(0.125);
  record.Apply(done);
  EXPECT_EQ(record.test_loss(), 0.125);
  EXPECT_EQ(record.test_accuracy(), std::nullopt);
  EXPECT_EQ(record.epochs().at(1).test_accuracy, std::nullopt);
}

// Two workers evaluate the last epoch with different buffers, and their events interleave.
TEST(RunRecordTest, TheLastEpochAndTheRunHaveTheResultOfOneEvaluator) {
  RunRecord record(2);
  for (const uint32_t worker : {0, 1}) {
    WorkerEvent event = Of(worker);
    event.mutable_epoch()->set_test_accuracy(0.8 + 0.1 * worker);
    event.mutable_epoch()->set_test_loss(0.5 - 0.1 * worker);
    record.Apply(event);
  }
  for (const uint32_t worker : {1, 0}) {
    WorkerEvent event = Done(worker, 0.1, 1);
    event.mutable_done()->set_evaluator(true);
    event.mutable_done()->set_final_test_accuracy(0.8 + 0.1 * worker);
    event.mutable_done()->set_final_test_loss(0.5 - 0.1 * worker);
    record.Apply(event);
  }
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.8);
  EXPECT_DOUBLE_EQ(*record.epochs().at(0).test_accuracy, 0.8);
  EXPECT_DOUBLE_EQ(*record.epochs().at(0).test_loss, 0.5);
  EXPECT_TRUE(record.workers()[0].evaluator);
  EXPECT_FALSE(record.workers()[1].evaluator);
}

TEST(RunRecordTest, ADivergedWorkerHasItsSymptom) {
  RunRecord record(2);
  WorkerEvent epoch = Of(1);
  epoch.mutable_epoch()->set_diverged("the training loss did not fall");
  record.Apply(epoch);
  EXPECT_EQ(record.diverged(), "worker 1: the training loss did not fall");
  epoch.mutable_epoch()->clear_diverged();
  record.Apply(epoch);
  EXPECT_EQ(record.diverged(), "");
  WorkerEvent done = Done(1, 0.1, 1);
  done.mutable_done()->set_diverged("the loss of step 7 is not finite");
  record.Apply(done);
  record.WorkerEnded(WorkerId{1}, ExitStatus{.code = 65, .signal = 0}, false);
  EXPECT_EQ(record.workers()[1].state, State::kDiverged);
  EXPECT_EQ(record.diverged(), "worker 1: the loss of step 7 is not finite");
}

WorkerEvent Joined(uint32_t worker, uint64_t step, uint64_t planned_steps) {
  WorkerEvent event = Of(worker);
  event.mutable_joined()->set_step(step);
  event.mutable_joined()->set_planned_steps(planned_steps);
  return event;
}

WorkerEvent Step(uint32_t worker, uint64_t step, uint64_t examples, uint64_t sent_bytes) {
  WorkerEvent event = Of(worker);
  event.mutable_step()->set_step(step);
  event.mutable_step()->set_examples(examples);
  event.mutable_step()->set_seconds(1);
  event.mutable_step()->mutable_counters()->set_sent_bytes(sent_bytes);
  return event;
}

TEST(RunRecordTest, TheCountersOfAllProcessesOfAWorkerAreAdded) {
  RunRecord record(1);
  record.Apply(Joined(0, 0, 100));
  record.Apply(Step(0, 10, 100, 1000));
  record.Apply(Step(0, 20, 200, 2000));
  record.WorkerRestarted(WorkerId{0}, ExitStatus{.code = 0, .signal = 9});
  EXPECT_EQ(record.workers()[0].state, State::kStarting);
  EXPECT_EQ(record.examples(), 200) << "before the new process reports a step";
  EXPECT_EQ(record.Totals().sent_bytes(), 2000);

  record.Apply(Joined(0, 30, 100));
  record.Apply(Step(0, 35, 50, 500));
  EXPECT_EQ(record.examples(), 250);
  EXPECT_EQ(record.seconds(), 2);
  EXPECT_EQ(record.Totals().sent_bytes(), 2500);
  record.WorkerRestarted(WorkerId{0}, ExitStatus{.code = 0, .signal = 9});

  record.Apply(Joined(0, 40, 100));
  WorkerEvent done = Of(0);
  done.mutable_done()->set_steps(60);
  done.mutable_done()->set_examples(600);
  done.mutable_done()->set_seconds(5);
  done.mutable_done()->mutable_counters()->set_sent_bytes(6000);
  record.Apply(done);
  record.WorkerEnded(WorkerId{0}, ExitStatus{}, false);
  EXPECT_EQ(record.workers()[0].state, State::kDone);
  EXPECT_EQ(record.steps(), 100);
  EXPECT_EQ(record.examples(), 850);
  EXPECT_EQ(record.seconds(), 7);
  EXPECT_EQ(record.Totals().sent_bytes(), 8500);
  EXPECT_EQ(record.restarts().size(), 2);
}

TEST(RunRecordTest, AnAddedWorkerHasARowAndKeepsTheCountsOfItsEarlierProcess) {
  RunRecord record(1);
  record.WorkerAdded(WorkerId{2});
  ASSERT_EQ(record.workers().size(), 3u);
  EXPECT_EQ(record.workers()[2].worker, WorkerId{2});
  record.Apply(Step(2, 10, 100, 1000));
  EXPECT_EQ(record.examples(), 100);
  record.WorkerAdded(WorkerId{2});
  EXPECT_EQ(record.workers()[2].state, State::kStarting);
  record.Apply(Step(2, 15, 50, 500));
  EXPECT_EQ(record.examples(), 150);
  EXPECT_TRUE(record.restarts().empty());
}

TEST(RunRecordTest, AnEpochsCountersIncludeThoseOfEndedProcesses) {
  RunRecord record(1);
  record.Apply(Step(0, 10, 100, 1000));
  record.WorkerRestarted(WorkerId{0}, ExitStatus{.code = 0, .signal = 9});
  WorkerEvent epoch = Of(0);
  epoch.mutable_epoch()->mutable_counters()->set_sent_bytes(30);
  record.Apply(epoch);
  EXPECT_EQ(record.epochs().at(0).counters.sent_bytes(), 1030);
}

TEST(RunRecordTest, ARestartHasTheReasonOfTheEndAndTheNewProcessHasNone) {
  RunRecord record(1);
  WorkerEvent error = Of(0);
  error.mutable_error()->set_message("server 1 is silent");
  record.Apply(error);
  record.WorkerRestarted(WorkerId{0}, ExitStatus{.code = 69, .signal = 0});
  EXPECT_EQ(record.restarts()[0].process, "worker 0");
  EXPECT_EQ(record.restarts()[0].reason, "exit code 69: server 1 is silent");
  record.WorkerEnded(WorkerId{0}, ExitStatus{.code = 0, .signal = 9}, false);
  EXPECT_EQ(record.workers()[0].reason, "killed by signal 9 (Killed)");
}

TEST(RunRecordTest, AWorkerThatJoinsAfterTheLastStepDoesNotAddSteps) {
  RunRecord record(1);
  record.Apply(Joined(0, 101, 100));
  WorkerEvent done = Of(0);
  done.mutable_done();
  record.Apply(done);
  EXPECT_EQ(record.steps(), 100);
}

TEST(RunRecordTest, RepeatedStepsCountOnce) {
  RunRecord record(1);
  record.Apply(Joined(0, 20, 100));
  WorkerEvent done = Of(0);
  done.mutable_done()->set_steps(95);
  done.mutable_done()->mutable_counters()->set_repeated_steps(15);
  record.Apply(done);
  EXPECT_EQ(record.steps(), 100);
}

TEST(RunRecordTest, WaitingLastsUntilTheNextStep) {
  RunRecord record(2);
  WorkerEvent waiting = Of(1);
  waiting.mutable_waiting()->set_text("step 4: waits for worker 0");
  record.Apply(waiting);
  EXPECT_EQ(record.waiting(), "worker 1: step 4: waits for worker 0");
  WorkerEvent step = Of(1);
  step.mutable_step();
  record.Apply(step);
  EXPECT_EQ(record.waiting(), "");
}

TEST(RunRecordTest, EventsOfUnknownWorkersAreIgnored) {
  RunRecord record(1);
  WorkerEvent joined = Of(7);
  joined.mutable_joined();
  record.Apply(joined);
  EXPECT_EQ(record.CountOf(State::kStarting), 1);
}

TEST(ServerTotalsTest, CountersAndStalenessAreSummedOverTheServers) {
  std::vector<StatusReply> replies(2);
  replies[0].set_accepted_pushes(5);
  replies[0].set_generation(1);
  replies[0].set_epoch(12345);
  replies[1].set_accepted_pushes(6);
  replies[1].set_late_pushes(2);
  (*replies[0].mutable_staleness())[0] = 4;
  (*replies[0].mutable_staleness())[1] = 1;
  (*replies[1].mutable_staleness())[1] = 2;
  (*replies[1].mutable_staleness())[5] = 1;
  const ServerTotals totals = TotalsOf(replies);
  EXPECT_EQ(totals.counters.accepted_pushes(), 11);
  EXPECT_EQ(totals.counters.late_pushes(), 2);
  EXPECT_EQ(totals.counters.generation(), 0);
  EXPECT_EQ(totals.counters.epoch(), 0);
  EXPECT_EQ(totals.staleness, (std::map<uint64_t, uint64_t>{{0, 4}, {1, 3}, {5, 1}}));
  EXPECT_DOUBLE_EQ(totals.mean_staleness(), 1.0);
  EXPECT_EQ(totals.max_staleness(), 5);
}

TEST(ServerTotalsTest, TheRuleIsThatOfTheLead) {
  std::vector<StatusReply> replies(2);
  replies[0].set_mode("backup");
  replies[0].set_backup(2);
  replies[1].set_mode("sync");
  const ServerTotals totals = TotalsOf(replies);
  EXPECT_EQ(totals.rule.mode, "backup");
  EXPECT_EQ(totals.rule.backup, 2u);
  EXPECT_EQ(totals.rule.slack, std::nullopt);
}

TEST(ServerTotalsTest, UpdatesAreThoseOfTheShardWithTheMost) {
  std::vector<StatusReply> replies(2);
  replies[0].set_batch(64);
  replies[0].add_shards()->set_version(7);
  replies[1].add_shards()->set_version(9);
  replies[1].add_shards()->set_version(8);
  const ServerTotals totals = TotalsOf(replies);
  EXPECT_EQ(totals.updates, 9);
  EXPECT_EQ(totals.batch.examples, 64);
}

TEST(ServerTotalsTest, SaturatedShardsAreListed) {
  std::vector<StatusReply> replies(2);
  for (const uint32_t shard : {7, 4}) {
    ShardStatus& status = *replies[shard % 2].add_shards();
    status.set_shard(shard);
    status.set_saturated_updates(2);
    replies[shard % 2].set_saturated_updates(2);
  }
  replies[0].add_shards()->set_shard(5);
  const ServerTotals totals = TotalsOf(replies);
  EXPECT_EQ(totals.counters.saturated_updates(), 4);
  EXPECT_EQ(totals.saturated_shards, (std::vector<uint32_t>{4, 7}));
}

TEST(ServerTotalsTest, TheFieldsThatIdentifyAServerAreNoCounters) {
  std::vector<std::string> names;
  TotalsOf({}).ForEachCounter([&](const std::string& name, uint64_t) { names.push_back(name); });
  EXPECT_THAT(names, Contains("accepted_pushes"));
  EXPECT_THAT(names, Contains("split_steps"));
  EXPECT_THAT(names, Not(AnyOf(Contains("generation"), Contains("epoch"))));
  EXPECT_THAT(names, Not(Contains("next_mode_step")));
}

TEST(ServerTotalsTest, TotalsOfNoServersAreZero) {
  EXPECT_EQ(TotalsOf({}).mean_staleness(), 0);
  EXPECT_EQ(TotalsOf({}).max_staleness(), 0);
}

}  // namespace
}  // namespace thinwire
