#include "server/job/job.h"

#include <glog/logging.h>

#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/model/partition.h"
#include "common/time/clock.h"
#include "common/time/trace.h"
#include "gtest/gtest.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/job/job_threads.h"
#include "server/job/testing/test_stream.h"

namespace thinwire {
namespace {

constexpr uint32_t kFp32 = 1;
constexpr Epoch kEpoch{77};
constexpr Generation kGeneration{1};

// Two tensors, which the partition maps to two shards with 3 and 4 values.
const std::vector<TensorShape> kTensors = {{"w", {2, 2}}, {"b", {3}}};

std::vector<float> ValuesOf(const ByteChain& payload, size_t count) {
  std::vector<float> values(count);
  DecodePayload(CheckPayload(payload, count).value(), values);
  return values;
}

class JobTest : public testing::Test {
 protected:
  void Make(const Rule& rule, uint32_t server = 0) {
    JobOptions options;
    options.rule = rule;
    options.server = ServerId{server};
    options.epoch = kEpoch;
    options.drained = [this] { drained_.Notify(); };
    options.tracer = tracer_;
    options.group_updates = {
        {MakeOptimizer({}).value(), Schedule::Make({.learning_rate = 0.5}).value()}};
    job_ = std::make_unique<Job>(options, clock_, threads_.executors());
  }

  JoinRequest RequestOf(uint32_t worker, uint64_t incarnation = 0) const {
    return JoinRequestOf(partition_, worker, incarnation, /*run=*/0);
  }
  Pending<JoinReply> StartJoin(const JoinRequest& request) {
    Pending<JoinReply> pending;
    job_->Join(
        request, [] { return false; }, pending.done());
    return pending;
  }
  absl::StatusOr<JoinReply> Join(const JoinRequest& request) { return StartJoin(request).Get(); }
  HeartbeatReply Heartbeat(uint32_t worker, uint64_t incarnation) {
    HeartbeatRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    request.set_epoch(kEpoch.value);
    Pending<HeartbeatReply> pending;
    job_->Call(request, pending.done());
    return pending.Get().value();
  }
  absl::Status Leave(uint32_t worker, uint64_t incarnation) {
    LeaveRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    Pending<LeaveReply> pending;
    job_->Call(request, pending.done());
    return pending.Get().status();
  }
  absl::Status Drain(std::optional<uint32_t> worker) {
    DrainRequest request;
    if (worker.has_value()) request.set_worker(*worker);
    Pending<DrainReply> pending;
    job_->Call(request, pending.done());
    return pending.Get().status();
  }
  StatusReply Status() {
    Pending<StatusReply> pending;
    job_->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  // Advances the clock after the job has handled all messages that were sent.
  void Advance(absl::Duration by) {
    Status();
    clock_.Advance(by);
  }
  void AdvanceAndTick(absl::Duration by) {
    Advance(by);
    absl::Notification done;
    job_->Tick([&done] { done.Notify(); });
    done.WaitForNotification();
  }

  static WorkerFrame Frame(uint32_t worker, uint64_t incarnation = 1) {
    WorkerFrame frame;
    frame.worker = {worker};
    frame.incarnation = {incarnation};
    frame.generation = kGeneration;
    frame.epoch = kEpoch;
    return frame;
  }
  // Returns a frame that seeds both shards with ones and reads step 0.
  WorkerFrame SeedAndRead(uint32_t worker) const {
    WorkerFrame frame = Frame(worker);
    for (uint32_t s = 0; s < 2; ++s) {
      frame.seeds.push_back({{s}, Payload(std::vector<float>(Count(s), 1))});
      frame.reads.push_back({{s}, {0}, {0}, kFp32});
    }
    return frame;
  }
  WorkerFrame PushOf(uint32_t worker, uint32_t shard, uint64_t step, float value) const {
    WorkerFrame frame = Frame(worker);
    PushEntry& push = frame.pushes.emplace_back();
    push.shard = {shard};
    push.step = {step};
    push.examples = 4;
    push.read_codec = kFp32;
    push.payload = Payload(std::vector<float>(Count(shard), value));
    return frame;
  }
  size_t Count(uint32_t shard) const { return partition_.value_count(ShardId{shard}); }

  const Partition partition_ = Partition::Make(kTensors, 0, 1).value();
  ManualClock clock_;
  JobThreads threads_{2};
  absl::Notification drained_;
  Tracer* tracer_ = nullptr;  // of the next job that Make() makes
  std::unique_ptr<Job> job_;
};

TEST_F(JobTest, TheFirstJoinMakesTheModel) {
  Make(Rule::Sync(2));
  EXPECT_FALSE(Status().sealed());
  const JoinReply reply = Join(RequestOf(1)).value();
  EXPECT_EQ(reply.incarnation(), 1u);
  EXPECT_EQ(reply.generation(), kGeneration.value);
  EXPECT_EQ(reply.epoch(), kEpoch.value);
  EXPECT_TRUE(reply.by_round());
  EXPECT_EQ(reply.workers(), 2u);
  ASSERT_EQ(reply.shards_size(), 2);
  EXPECT_FALSE(reply.shards(0).seeded());
  EXPECT_TRUE(Status().sealed());
}

TEST_F(JobTest, AJoinOfAnotherJobOrModelIsRefused) {
  Make(Rule::Sync(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  EXPECT_EQ(
      Join(RequestOf(2)).status(),
      absl::InvalidArgumentError("worker: not a worker of this job (expected below 2, got 2)"));
  JoinRequest other_job = RequestOf(1);
  other_job.set_job("o\"ther\n" + std::string(1000, 'x'));
  const absl::Status refused = Join(other_job).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StartsWith(refused.message(),
                               R"(job: another job (expected "train", got "o\"ther\nxx)"))
      << refused;
  EXPECT_LT(refused.message().size(), 300u);
  JoinRequest other_model = RequestOf(1);
  other_model.set_partition_hash(5);
  EXPECT_EQ(Join(other_model).status().code(), absl::StatusCode::kFailedPrecondition);
}

// A worker that states the hash of the job's model with other tensors.
TEST_F(JobTest, OtherTensorsWithTheSameHashAreRefused) {
  Make(Rule::Sync(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  JoinRequest renamed = RequestOf(1);
  renamed.mutable_tensors(1)->set_name("c");
  EXPECT_EQ(Join(renamed).status().code(), absl::StatusCode::kFailedPrecondition);
  JoinRequest reshaped = RequestOf(1);
  reshaped.mutable_tensors(0)->set_shape(0, 3);
  EXPECT_EQ(Join(reshaped).status().code(), absl::StatusCode::kFailedPrecondition);
  JoinRequest none = RequestOf(1);
  none.clear_tensors();
  EXPECT_FALSE(Join(none).ok());
}

TEST_F(JobTest, OtherFirstValuesAreRefused) {
  Make(Rule::Sync(2));
  JoinRequest first = RequestOf(0);
  first.set_initial_hash(1);
  ASSERT_TRUE(Join(first).ok());
  JoinRequest other = RequestOf(1);
  other.set_initial_hash(2);
  EXPECT_EQ(Join(other).status(),
            absl::FailedPreconditionError(
                "worker 1: the content of the first values differs from the job's (expected hash "
                "0000000000000001, got 0000000000000002)"));
}

TEST_F(JobTest, OneConnectedWorkerAtATimeIsAskedForTheFirstValues) {
  constexpr uint32_t kWorkers = 8;
  Make(Rule::Sync(kWorkers));
  std::vector<std::unique_ptr<TestStream>> streams;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    ASSERT_TRUE(Join(RequestOf(w)).ok());
    streams.push_back(std::make_unique<TestStream>(*job_));
    WorkerFrame frame = SeedAndRead(w);
    frame.seeds.clear();
    streams[w]->Send(frame);
    streams[w]->AwaitRead();
  }
  const auto expect_asked = [&](uint32_t worker) {
    for (uint32_t s = 0; s < 2; ++s) {
      const WaitingEntry entry = streams[worker]->NextWaiting();
      EXPECT_TRUE(entry.seed);
      EXPECT_TRUE(entry.unseeded);
    }
  };
  expect_asked(0);
  Status();  // replies after every shard has applied the reads
  for (uint32_t w = 0; w < kWorkers; ++w) EXPECT_EQ(streams[w]->waiting_count(), 0u);

  // Worker 0 dies without sending a value.
  streams[0].reset();
  expect_asked(1);
  // Worker 1 stays connected, but its lease ends. Worker 0, which has no stream, is skipped.
  clock_.Advance(absl::Seconds(6));
  for (const uint32_t w : {0, 2, 3, 4, 5, 6, 7}) Heartbeat(w, 1);
  AdvanceAndTick(absl::Seconds(5));
  Heartbeat(1, 1);  // worker 1 is live again
  bool asked = false;
  while (!asked) asked = streams[2]->NextWaiting().seed;

  WorkerFrame seeds = SeedAndRead(2);
  seeds.reads.clear();
  streams[2]->Send(seeds);
  for (uint32_t w = 1; w < kWorkers; ++w) {
    for (uint32_t s = 0; s < 2; ++s) EXPECT_EQ(streams[w]->NextParameters().step, Step{0});
  }
  EXPECT_EQ(Status().seed_payload_bytes(), 2 + 4 * partition_.value_count());
}

TEST_F(JobTest, ExtremeStepsAreRefused) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(PushOf(0, 0, ~uint64_t{0}, 1));
  EXPECT_EQ(wire.AwaitEnd().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobTest, OnlyTheLeadAssignsIncarnations) {
  Make(Rule::Sync(2), /*server=*/1);
  JoinRequest request = RequestOf(0);
  request.set_servers(1);
  EXPECT_EQ(Join(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(JobTest, AWorkerSeedsReadsAndPushes) {
  Make(Rule::Sync(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(SeedAndRead(0));
  for (int i = 0; i < 2; ++i) {
    const ParametersEntry first = wire.NextParameters();
    EXPECT_EQ(first.step, Step{0});
    EXPECT_EQ(ValuesOf(first.payload, Count(first.shard.value)),
              std::vector<float>(Count(first.shard.value), 1));
  }
  wire.Send(PushOf(0, 1, 0, 0.5));
  const VerdictEntry verdict = wire.NextVerdict();
  EXPECT_EQ(verdict.shard, ShardId{1});
  EXPECT_EQ(verdict.kind, static_cast<uint32_t>(Verdict::kAccept));
  EXPECT_EQ(verdict.version, Version{1});
  const ParametersEntry next = wire.NextParameters();
  EXPECT_EQ(next.step, Step{1});
  EXPECT_EQ(next.version, Version{1});
  EXPECT_EQ(ValuesOf(next.payload, Count(1)), std::vector<float>(Count(1), 0.75));
  const StatusReply status = Status();
  EXPECT_EQ(status.accepted_pushes(), 1u);
  EXPECT_EQ(status.push_payload_bytes(), 1 + 4 * Count(1));
  EXPECT_EQ(status.parameters_payload_bytes(), 3 + 4 * (Count(0) + 2 * Count(1)));
}

TEST_F(JobTest, TheStatusCountsSaturatedUpdatesAndNamesTheirShard) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(SeedAndRead(0));
  // Each push adds 2.1e37, so push 17 exceeds 3.4e38, the largest float.
  for (uint64_t step = 0; step < 17; ++step) {
    wire.Send(PushOf(0, 1, step, -4.2e37f));
    EXPECT_EQ(wire.NextVerdict().kind, static_cast<uint32_t>(Verdict::kAccept));
  }
  const StatusReply status = Status();
  EXPECT_EQ(status.saturated_updates(), 1u);
  EXPECT_EQ(status.shards(0).saturated_updates(), 0u);
  EXPECT_EQ(status.shards(1).saturated_updates(), 1u);
}

TEST_F(JobTest, TheStatusHasWhatTheWorkersTellOfTheirTraining) {
  Make(Rule::Sync(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  HeartbeatRequest request;
  request.set_worker(1);
  request.set_incarnation(1);
  request.mutable_progress()->set_planned_steps(100);
  request.mutable_progress()->set_loss(0.5);
  request.mutable_test()->set_step(7);
  request.mutable_test()->set_accuracy(0.75);
  const auto send = [&](Epoch epoch) {
    request.set_epoch(epoch.value);
    Pending<HeartbeatReply> pending;
    job_->Call(request, pending.done());
    ASSERT_TRUE(pending.Get().ok());
  };
  send(Epoch{kEpoch.value - 1});
  EXPECT_TRUE(Status().progress().empty()) << "the worker has not joined this process";
  send(kEpoch);
  const StatusReply status = Status();
  ASSERT_EQ(status.progress().size(), 1u);
  EXPECT_EQ(status.progress().at(1).planned_steps(), 100u);
  EXPECT_EQ(status.progress().at(1).loss(), 0.5);
  EXPECT_EQ(status.progress().at(1).test().step(), 7u);
}

TEST_F(JobTest, ARepeatedPushGetsItsVerdictAgain) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(SeedAndRead(0));
  wire.Send(PushOf(0, 1, 0, 0.5));
  EXPECT_FALSE(wire.NextVerdict().again);
  wire.Send(PushOf(0, 1, 0, 0.5));
  const VerdictEntry again = wire.NextVerdict();
  EXPECT_TRUE(again.again);
  EXPECT_EQ(again.version, Version{1});
}

TEST_F(JobTest, Promise7ANonFinitePushIsRefusedCountedAndChangesNothing) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(SeedAndRead(0));
  wire.Send(PushOf(0, 0, 0, std::nanf("")));
  EXPECT_EQ(wire.NextVerdict().kind, static_cast<uint32_t>(Verdict::kRefused));
  EXPECT_EQ(Status().refused_pushes(), 1);
  wire.Send(PushOf(0, 0, 1, 1));
  const VerdictEntry accepted = wire.NextVerdict();
  EXPECT_EQ(accepted.kind, static_cast<uint32_t>(Verdict::kAccept));
  EXPECT_EQ(accepted.version, Version{1}) << "the refused push made no version";
}

TEST_F(JobTest, AMalformedFrameEndsOnlyItsStream) {
  Make(Rule::Async(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  TestStream good(*job_);
  good.Send(SeedAndRead(0));
  {
    TestStream other(*job_);
    other.Send(SeedAndRead(1));
    EXPECT_EQ(other.NextParameters().step, Step{0});
  }
  {
    TestStream bad(*job_);
    const ByteChain whole = WriteFrame(PushOf(1, 0, 0, 1));
    bad.Send(whole.Sub(0, whole.size() - 1));
    EXPECT_EQ(bad.AwaitEnd().code(), absl::StatusCode::kInvalidArgument);
  }
  {
    TestStream bad(*job_);
    WorkerFrame frame = PushOf(1, 0, 0, 1);
    frame.pushes.push_back(frame.pushes[0]);
    frame.pushes[1].shard = {9};
    bad.Send(frame);
    EXPECT_EQ(bad.AwaitEnd(),
              absl::InvalidArgumentError("shard 9: does not exist (expected a shard below 2)"));
    // The server also drops the valid push that precedes the invalid push in the frame.
    EXPECT_EQ(Status().accepted_pushes(), 0u);
  }
  {
    TestStream bad(*job_);
    WorkerFrame frame = PushOf(1, 0, 0, 1);
    frame.epoch = {1};
    bad.Send(frame);
    EXPECT_EQ(bad.AwaitEnd().code(), absl::StatusCode::kFailedPrecondition);
  }
  {
    TestStream bad(*job_);
    bad.Send(Frame(1));
    bad.Send(Frame(0));
    EXPECT_EQ(bad.AwaitEnd().code(), absl::StatusCode::kInvalidArgument);
  }
  good.Send(PushOf(0, 0, 0, 1));
  EXPECT_EQ(good.NextVerdict().kind, static_cast<uint32_t>(Verdict::kAccept));
}

TEST_F(JobTest, NothingIsReadBehindAMalformedFrame) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  for (const bool malformed_entry : {true, false}) {
    TestStream bad(*job_);
    if (malformed_entry) {
      WorkerFrame frame = PushOf(0, 0, 0, 1);
      frame.pushes[0].shard = {9};
      bad.Send(frame);
    } else {
      const ByteChain whole = WriteFrame(PushOf(0, 0, 0, 1));
      bad.Send(whole.Sub(0, whole.size() - 1));
    }
    EXPECT_EQ(bad.AwaitEnd().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(bad.wants_read());
  }
}

TEST_F(JobTest, AFrameHasAFewEntriesPerShard) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  WorkerFrame frame = Frame(0);
  frame.reads.assign(64, {{0}, {0}, {0}, kFp32});
  TestStream good(*job_);
  good.Send(frame);
  good.AwaitRead();
  frame.reads.push_back(frame.reads[0]);
  good.Send(frame);
  const absl::Status end = good.AwaitEnd();
  EXPECT_EQ(end.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::EndsWith(end.message(), "too many entries (expected at most 64)")) << end;
}

TEST_F(JobTest, TheStatusCountsTheBytesOfHeldFrames) {
  Make(Rule::Sync(2, /*ordered_fold=*/true));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  TestStream w0(*job_), w1(*job_);
  w0.Send(SeedAndRead(0));
  w1.Send(SeedAndRead(1));
  w0.NextParameters();
  w1.NextParameters();
  Status();  // returns when every shard has released the frames
  EXPECT_EQ(Status().buffered_bytes(), 0);
  // The push of worker 1 is folded after the push of worker 0.
  const ByteChain push = WriteFrame(PushOf(1, 0, 0, 1));
  w1.Send(push);
  EXPECT_EQ(w1.NextVerdict().kind, static_cast<uint32_t>(Verdict::kAccept));
  EXPECT_EQ(Status().buffered_bytes(), push.size());
  EXPECT_FALSE(w1.wants_read());
  w0.Send(PushOf(0, 0, 0, 1));
  w0.AwaitRead();
  w1.AwaitRead();
  EXPECT_EQ(Status().buffered_bytes(), 0);
}

TEST_F(JobTest, AStreamOfAnUnknownProcessIsEnded) {
  Make(Rule::Async(2));
  TestStream early(*job_);
  early.Send(Frame(0));
  EXPECT_EQ(early.AwaitEnd().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream unknown(*job_);
  unknown.Send(Frame(1));
  EXPECT_EQ(unknown.AwaitEnd().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobTest, ReadersOfOneVersionShareItsBytes) {
  Make(Rule::Sync(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  TestStream first(*job_), second(*job_);
  first.Send(SeedAndRead(0));
  second.Send(SeedAndRead(1));
  const ParametersEntry a = first.NextParameters();
  ParametersEntry b = second.NextParameters();
  if (b.shard != a.shard) b = second.NextParameters();
  EXPECT_EQ(a.payload.pieces()[0].bytes.data(), b.payload.pieces()[0].bytes.data());
}

TEST_F(JobTest, ANewProcessTakesOverAfterTheLeaseAndFencesTheOldOne) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream old_process(*job_);
  old_process.Send(SeedAndRead(0));
  old_process.NextParameters();
  Advance(absl::Seconds(1));
  Pending<JoinReply> newcomer = StartJoin(RequestOf(0));
  AdvanceAndTick(absl::Seconds(5));
  EXPECT_FALSE(newcomer.ready());
  AdvanceAndTick(absl::Seconds(5));
  EXPECT_EQ(newcomer.Get().value().incarnation(), 2u);
  EXPECT_TRUE(Heartbeat(0, 1).fenced());
  EXPECT_FALSE(Heartbeat(0, 2).fenced());
  old_process.Send(PushOf(0, 0, 0, 1));
  EXPECT_EQ(old_process.NextVerdict().kind, static_cast<uint32_t>(Verdict::kFenced));
}

TEST_F(JobTest, AHeartbeatStatesTheTimeOfTheTracersClock) {
  ManualClock unix_clock;
  unix_clock.Advance(absl::Seconds(1'700'000'000));
  Tracer tracer("server 0", unix_clock);
  tracer_ = &tracer;
  Make(Rule::Async(1));
  EXPECT_EQ(Heartbeat(0, 1).unix_micros(), 1'700'000'000'000'000);
  tracer_ = nullptr;
  Make(Rule::Async(1));
  EXPECT_GT(Heartbeat(0, 1).unix_micros(), 1'700'000'000'000'000) << "the date of this machine";
}

// Counts the lines of the log.
class LineCounter final : public google::LogSink {
 public:
  LineCounter() { google::AddLogSink(this); }
  ~LineCounter() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char* message, size_t length) override {
    ++count_;
    last_.assign(message, length);
  }
  int count() const { return count_; }
  const std::string& last() const { return last_; }

 private:
  int count_ = 0;
  std::string last_;
};

TEST_F(JobTest, AWorkerThatJoinsAndLeavesAgainAndAgainDoesNotFillTheLog) {
  Make(Rule::Async(1));
  LineCounter lines;
  constexpr uint64_t kJoins = 2000;
  for (uint64_t i = 1; i <= kJoins; ++i) {
    const auto reply = Join(RequestOf(0));
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_TRUE(Leave(0, reply->incarnation()).ok());
  }
  Status();
  EXPECT_GE(lines.count(), 256);
  EXPECT_LT(lines.count(), 300);
  Advance(absl::Seconds(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  Status();
  EXPECT_TRUE(absl::StrContains(lines.last(), " more like this)")) << lines.last();
}

TEST_F(JobTest, ANewProcessIsRefusedWhenTheOldOneSendsAMessage) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  Advance(absl::Seconds(1));
  Pending<JoinReply> newcomer = StartJoin(RequestOf(0));
  Advance(absl::Seconds(1));
  Heartbeat(0, 1);
  EXPECT_EQ(newcomer.Get().status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(JobTest, AnAbandonedJoinIsNotAdmitted) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  Pending<JoinReply> gone;
  job_->Join(
      RequestOf(0), [] { return true; }, gone.done());
  EXPECT_EQ(gone.Get().status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(Heartbeat(0, 1).fenced());
}

TEST_F(JobTest, AWaitingReadIsNotifiedAndReleasedWhenTheOtherWorkerExpires) {
  Make(Rule::Sync(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  TestStream w0(*job_), w1(*job_);
  w0.Send(SeedAndRead(0));
  w1.Send(SeedAndRead(1));
  w0.NextParameters();
  w0.NextParameters();
  w0.Send(PushOf(0, 1, 0, 1));
  EXPECT_EQ(w0.NextVerdict().kind, static_cast<uint32_t>(Verdict::kAccept));
  AdvanceAndTick(absl::Seconds(3));
  const WaitingEntry waiting = w0.NextWaiting();
  EXPECT_EQ(waiting.shard, ShardId{1});
  EXPECT_EQ(waiting.step, Step{1});
  EXPECT_EQ(waiting.workers, std::vector<WorkerId>{WorkerId{1}});
  Advance(absl::Seconds(4));
  EXPECT_EQ(Heartbeat(0, 1).live_size(), 2);
  AdvanceAndTick(absl::Seconds(4));
  EXPECT_EQ(w0.NextParameters().step, Step{1});
  const StatusReply status = Status();
  EXPECT_EQ(status.lease_expirations(), 1u);
  EXPECT_TRUE(status.workers(0).live());
  EXPECT_FALSE(status.workers(1).live());
  // The heartbeat makes worker 1 live again at every shard.
  EXPECT_EQ(Heartbeat(1, 1).live_size(), 2);
}

TEST_F(JobTest, AServerThatWasSuspendedDoesNotCountItsPauseAsSilence) {
  Make(Rule::Async(1));
  job_->StartTicking(absl::Hours(1));  // this test ticks instead
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  const auto run_for_ten_seconds = [this] {
    for (int i = 0; i < 10; ++i) AdvanceAndTick(absl::Seconds(1));
  };
  AdvanceAndTick(absl::Seconds(30));
  run_for_ten_seconds();
  EXPECT_EQ(Status().lease_expirations(), 0u);
  AdvanceAndTick(absl::Seconds(1));
  EXPECT_EQ(Status().lease_expirations(), 1u);
}

TEST_F(JobTest, AProcessThatJoinsAfterAPauseDoesNotReplaceALiveOne) {
  Make(Rule::Async(1));
  job_->StartTicking(absl::Hours(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  Advance(absl::Seconds(30));
  Pending<JoinReply> newcomer = StartJoin(RequestOf(0));
  Heartbeat(0, 1);  // sent during the pause, received after the Join
  EXPECT_FALSE(newcomer.ready());
  Advance(absl::Seconds(1));
  EXPECT_FALSE(Heartbeat(0, 1).fenced());
  EXPECT_EQ(newcomer.Get().status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(JobTest, TrainingBeginsWithTheLiveWorkersAfterTheStartTimeout) {
  Make(Rule::Sync(2));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(SeedAndRead(0));
  AdvanceAndTick(absl::Seconds(3));
  const WaitingEntry waiting = wire.NextWaiting();
  EXPECT_EQ(waiting.live, 1u);
  EXPECT_EQ(waiting.wanted, 2u);
  for (int i = 0; i < 7; ++i) {
    Heartbeat(0, 1);
    AdvanceAndTick(absl::Seconds(9));
  }
  EXPECT_EQ(wire.NextParameters().step, Step{0});
  EXPECT_TRUE(Status().shards(0).open());
}

TEST_F(JobTest, AServerSendsItsMastersAfterTheLastWorkerLeft) {
  Make(Rule::Async(1));
  Pending<std::vector<MastersChunk>> before;
  job_->Masters({}, 0, before.done());
  EXPECT_EQ(before.Get().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  {
    TestStream wire(*job_);
    wire.Send(SeedAndRead(0));
    wire.AwaitRead();
  }
  EXPECT_TRUE(Leave(0, 1).ok());
  EXPECT_TRUE(Status().workers(0).left());
  size_t values = 0;
  for (size_t place = 0;; ++place) {
    Pending<std::vector<MastersChunk>> chunks;
    job_->Masters({}, place, chunks.done());
    const auto got = chunks.Get();
    ASSERT_TRUE(got.ok()) << got.status();
    if (got->empty()) break;
    for (const MastersChunk& chunk : *got) values += chunk.values().size() / sizeof(float);
  }
  EXPECT_EQ(values, partition_.value_count());
  EXPECT_EQ(Join(RequestOf(0)).value().incarnation(), 2u);
}

TEST_F(JobTest, ADrainedWorkerIsToldToLeaveAndItsNextProcessIsNot) {
  Make(Rule::Async(2));
  EXPECT_EQ(Drain(0).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  EXPECT_EQ(Status().mode(), "async");
  EXPECT_EQ(Drain(1), absl::OkStatus());
  EXPECT_FALSE(Heartbeat(0, 1).retired());
  EXPECT_TRUE(Heartbeat(1, 1).retired());
  ASSERT_TRUE(Leave(1, 1).ok());
  EXPECT_EQ(Drain(1).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Join(RequestOf(1)).ok());
  EXPECT_FALSE(Heartbeat(1, 2).retired());
  EXPECT_EQ(Drain(1000).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(drained_.HasBeenNotified());
}

TEST_F(JobTest, ADrainedServerAsksItsOwnerToStopIt) {
  Make(Rule::Async(1), /*server=*/1);
  EXPECT_EQ(Drain(0).message(),
            "server: not the lead (expected server 0, the first of --addresses, got server 1)");
  EXPECT_EQ(Drain(std::nullopt), absl::OkStatus());
  drained_.WaitForNotification();
}

TEST_F(JobTest, StopRefusesJoinsAndEndsStreams) {
  Make(Rule::Async(1));
  ASSERT_TRUE(Join(RequestOf(0)).ok());
  TestStream wire(*job_);
  wire.Send(SeedAndRead(0));
  wire.Send(PushOf(0, 0, 0, 1));
  absl::Notification stopped;
  job_->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  EXPECT_EQ(wire.AwaitEnd().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(wire.NextVerdict().kind, static_cast<uint32_t>(Verdict::kAccept));
  EXPECT_EQ(Join(RequestOf(0)).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace thinwire
