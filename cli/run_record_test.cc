#include "cli/run_record.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

using Kind = WorkerEvent::Kind;
using State = WorkerRow::State;

WorkerEvent Event(Kind kind, uint32_t worker) {
  WorkerEvent event;
  event.kind = kind;
  event.worker = WorkerId{worker};
  event.seconds = 1;
  return event;
}

WorkerEvent Done(uint32_t worker, double median, double loss) {
  WorkerEvent event = Event(Kind::kDone, worker);
  event.step = 10 + worker;
  event.median_step_seconds = median;
  event.train_loss = loss;
  event.counts.push_bytes_encoded = 100;
  return event;
}

TEST(RunRecordTest, AWorkerStartsTrainsAndIsDone) {
  RunRecord record(2);
  EXPECT_EQ(record.CountOf(State::kStarting), 2);
  record.Apply(Event(Kind::kJoined, 1));
  EXPECT_EQ(record.workers()[1].state, State::kTraining);
  record.Apply(Done(1, 0.1, 0.5));
  record.WorkerEnded(WorkerId{1}, ExitStatus{}, false);
  EXPECT_EQ(record.workers()[1].state, State::kDone);
  EXPECT_EQ(record.steps(), 11);
}

TEST(RunRecordTest, AKilledWorkerIsLostWithItsReason) {
  RunRecord record(2);
  record.WorkerEnded(WorkerId{0}, ExitStatus{.code = 0, .signal = 9}, false);
  WorkerEvent error = Event(Kind::kError, 1);
  error.text = "server 1 (127.0.0.1:5) is silent";
  record.Apply(error);
  record.WorkerEnded(WorkerId{1}, ExitStatus{.code = 69, .signal = 0}, false);
  EXPECT_EQ(record.CountOf(State::kLost), 2);
  EXPECT_EQ(record.workers()[0].reason, "killed by signal 9 (Killed)");
  EXPECT_EQ(record.workers()[1].reason, "exit code 69: server 1 (127.0.0.1:5) is silent");
}

TEST(RunRecordTest, AWorkerThatWasToldToStopIsNotLost) {
  RunRecord record(1);
  record.WorkerEnded(WorkerId{0}, ExitStatus{.code = 75, .signal = 0}, true);
  EXPECT_EQ(record.workers()[0].state, State::kStopped);
}

TEST(RunRecordTest, ExitWithoutDoneIsLostEvenWithCodeZero) {
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
  EXPECT_EQ(record.Totals().push_bytes_encoded, 400);
  EXPECT_DOUBLE_EQ(*record.train_loss(), 2.5);
}

TEST(RunRecordTest, AnEpochsTrafficIsTheSumOverItsWorkers) {
  RunRecord record(2);
  for (const uint32_t worker : {0, 1}) {
    WorkerEvent event = Event(Kind::kEpoch, worker);
    event.epoch = 3;
    event.counts.sent_bytes = 100 + worker;
    event.counts.pull_bytes_raw = 7;
    record.Apply(event);
  }
  EXPECT_EQ(record.epochs().at(3).counts.sent_bytes, 201);
  EXPECT_EQ(record.epochs().at(3).counts.pull_bytes_raw, 14);
}

TEST(RunRecordTest, TheAccuracyIsTheEvaluatorsOrTheLastEpochs) {
  RunRecord record(2);
  EXPECT_FALSE(record.test_accuracy());
  for (uint64_t epoch : {0, 1}) {
    WorkerEvent event = Event(Kind::kEpoch, 0);
    event.epoch = epoch;
    event.train_loss = 2;
    event.test_accuracy = 0.5 + 0.1 * static_cast<double>(epoch);
    record.Apply(event);
    WorkerEvent other = Event(Kind::kEpoch, 1);
    other.epoch = epoch;
    other.train_loss = 4;
    record.Apply(other);
  }
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.6);
  EXPECT_DOUBLE_EQ(record.epochs().at(1).train_loss, 3);
  WorkerEvent done = Done(0, 0.1, 1);
  done.evaluator = true;
  done.test_accuracy = 0.9;
  record.Apply(done);
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.9);
  // Worker 0 has left, so worker 1 evaluates its own end, which is the job's.
  done.worker = WorkerId{1};
  done.test_accuracy = 0.91;
  record.Apply(done);
  EXPECT_DOUBLE_EQ(*record.test_accuracy(), 0.91);
}

TEST(RunRecordTest, WaitingLastsUntilTheNextStep) {
  RunRecord record(2);
  WorkerEvent waiting = Event(Kind::kWaiting, 1);
  waiting.text = "step 4: waits for worker 0";
  record.Apply(waiting);
  EXPECT_EQ(record.waiting(), "worker 1: step 4: waits for worker 0");
  record.Apply(Event(Kind::kStep, 1));
  EXPECT_EQ(record.waiting(), "");
}

TEST(RunRecordTest, AWorkerThatIsNotOursIsPassedOver) {
  RunRecord record(1);
  record.Apply(Event(Kind::kJoined, 7));
  EXPECT_EQ(record.CountOf(State::kStarting), 1);
}

}  // namespace
}  // namespace thinwire
