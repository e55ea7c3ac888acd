// Tests a server that is killed and started again with its state on disk.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/model/partition.h"
#include "common/time/clock.h"
#include "gtest/gtest.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/durable/checkpoint.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/testing/test_stream.h"
#include "server/protocols/membership/worker_tokens.h"

namespace thinwire {
namespace {

constexpr uint32_t kFp32 = 1;
constexpr auto kAccept = static_cast<uint32_t>(Verdict::kAccept);
constexpr char kFolder[] = "/state";
// Two tensors, which the partition maps to two shards with 3 and 4 values.
const std::vector<TensorShape> kTensors = {{"w", {2, 2}}, {"b", {3}}};

size_t Count(uint32_t shard) { return shard == 0 ? 3 : 4; }

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() {
    EXPECT_TRUE(files_.MakeFolder(kFolder).ok());
    EXPECT_TRUE(files_.SyncFolder("/").ok());
  }
  ~RecoveryTest() override { Stop(); }

  // Starts a server process, which recovers the state in the folder.
  absl::Status Start(const std::function<void(JobOptions&)>& change = [](JobOptions&) {}) {
    JobOptions options;
    options.rule = Rule::Sync(1);
    options.epoch = Epoch{++starts_};
    options.run = RunId{1000 + starts_};
    options.token_key = absl::StrCat("key ", starts_);
    options.durable =
        DurableOptions{.files = &files_,
                       .folder = kFolder,
                       .checkpoint_interval = absl::Seconds(5),
                       .log_failed = [this](const absl::Status&) { failed_.Notify(); }};
    change(options);
    options.group_updates = {
        {MakeOptimizer({.kind = OptimizerKind::kMomentum, .parameter_average = 0.9}).value(),
         Schedule::Make({.learning_rate = 0.5}).value()}};
    job_ = std::make_unique<Job>(options, clock_, threads_.executors());
    return job_->Recover();
  }
  void Stop() {
    stream_.reset();
    job_.reset();
  }
  // Ends the process; the disk keeps only what was flushed.
  void Kill() {
    files_.Crash();
    Stop();
    files_.Restart();
  }

  absl::StatusOr<JoinReply> Join(uint64_t incarnation = 0, uint64_t run = 0, uint32_t worker = 0) {
    const Partition partition = Partition::Make(kTensors, 0, 1).value();
    Pending<JoinReply> pending;
    job_->Join(
        JoinRequestOf(partition, worker, incarnation, run), [] { return false; }, pending.done());
    return pending.Get();
  }
  WorkerFrame Frame() const {
    WorkerFrame frame;
    frame.worker = {0};
    frame.incarnation = {1};
    frame.generation = {1};
    frame.epoch = Epoch{starts_};
    return frame;
  }
  void OpenStream() { stream_ = std::make_unique<TestStream>(*job_); }
  // Joins as worker 0, seeds both shards and reads step 0.
  void Begin() {
    const absl::StatusOr<JoinReply> reply = Join();
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->incarnation(), 1u);
    run_ = reply->run();
    OpenStream();
    WorkerFrame frame = Frame();
    for (uint32_t s = 0; s < 2; ++s) {
      frame.seeds.push_back({{s}, Payload(std::vector<float>(Count(s), 1))});
      frame.reads.push_back({{s}, {0}, {0}, kFp32});
    }
    stream_->Send(frame);
    for (uint32_t s = 0; s < 2; ++s) stream_->NextParameters();
  }
  // Joins again as the same process, and opens a stream.
  void Rejoin() {
    const absl::StatusOr<JoinReply> reply = Join(/*incarnation=*/1, run_);
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->run(), run_);
    EXPECT_EQ(reply->epoch(), starts_);
    OpenStream();
  }
  WorkerFrame PushesOf(uint64_t step) const {
    WorkerFrame frame = Frame();
    for (uint32_t s = 0; s < 2; ++s) {
      PushEntry& push = frame.pushes.emplace_back();
      push.shard = {s};
      push.step = {step};
      push.examples = 4;
      push.read_codec = kFp32;
      push.payload = Payload(std::vector<float>(Count(s), 0.25f + static_cast<float>(step)));
    }
    return frame;
  }
  void Push(uint64_t step) {
    stream_->Send(PushesOf(step));
    for (uint32_t s = 0; s < 2; ++s) {
      EXPECT_EQ(stream_->NextVerdict().kind, kAccept);
      EXPECT_EQ(stream_->NextParameters().step, Step{step + 1});
    }
  }
  // Trains a step, restarts the server, which begins another segment of the log, and makes a
  // checkpoint. Returns the result of reading the log from its first record.
  absl::Status ReplayAfterCheckpoint(bool keep_log) {
    const auto keep = [keep_log](JobOptions& options) { options.durable->keep_log = keep_log; };
    EXPECT_TRUE(Start(keep).ok());
    Begin();
    Push(0);
    Stop();
    EXPECT_TRUE(Start(keep).ok());
    absl::Notification stopped;
    job_->Stop([&stopped] { stopped.Notify(); });
    stopped.WaitForNotification();
    Stop();
    const auto ignore = [](LogSequence, const ByteChain&) { return absl::OkStatus(); };
    return ReplayLog(files_, kFolder, 1, ignore).status();
  }
  StatusReply Status() {
    Pending<StatusReply> pending;
    job_->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  absl::StatusOr<ScaleReply> Scale(uint32_t workers) {
    ScaleRequest request;
    request.set_workers(workers);
    Pending<ScaleReply> pending;
    job_->Call(request, pending.done());
    return pending.Get();
  }
  absl::StatusOr<SetModeReply> SetMode(Consistency::Mode::Value mode) {
    SetModeRequest request;
    request.mutable_consistency()->set_mode(mode);
    if (mode == Consistency::Mode::backup) request.mutable_consistency()->set_backup(1);
    Pending<SetModeReply> pending;
    job_->Call(request, pending.done());
    return pending.Get();
  }
  // Returns whether a process of a worker is told to leave.
  bool IsRetired(uint32_t worker, uint64_t incarnation = 0) {
    HeartbeatRequest request;
    request.set_worker(worker);
    request.set_incarnation(incarnation);
    Pending<HeartbeatReply> pending;
    job_->Call(request, pending.done());
    return pending.Get()->retired();
  }
  // Returns the bytes of all masters and their averages.
  std::string Masters() {
    std::string bytes;
    MastersRequest request;
    for (const bool averages : {false, true}) {
      request.set_averages(averages);
      for (size_t i = 0; i < 2; ++i) {
        Pending<std::vector<MastersChunk>> pending;
        job_->Masters(request, i, pending.done());
        const std::vector<MastersChunk> chunks = pending.Get().value();
        for (const MastersChunk& chunk : chunks) bytes += chunk.values();
      }
    }
    return bytes;
  }
  void AdvanceAndTick(absl::Duration by) {
    Status();
    clock_.Advance(by);
    Tick();
  }
  void Tick() {
    absl::Notification done;
    job_->Tick([&done] { done.Notify(); });
    done.WaitForNotification();
  }

  FaultyFiles files_;
  ManualClock clock_;
  JobThreads threads_{2};
  uint64_t starts_ = 0;
  uint64_t run_ = 0;
  absl::Notification failed_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<TestStream> stream_;
};

TEST_F(RecoveryTest, AKilledServerContinuesWithTheSameBits) {
  ASSERT_TRUE(Start().ok());
  Begin();
  for (uint64_t step = 0; step < 6; ++step) Push(step);
  const std::string undisturbed = Masters();
  const size_t half = undisturbed.size() / 2;
  EXPECT_NE(undisturbed.substr(0, half), undisturbed.substr(half)) << "the averages lag behind";
  Stop();
  const std::vector<std::string> names = files_.List(kFolder).value();
  for (const std::string& name : names) {
    ASSERT_TRUE(files_.Remove(absl::StrCat(kFolder, "/", name)).ok());
  }

  ASSERT_TRUE(Start().ok());
  EXPECT_FALSE(Status().recovered());
  Begin();
  for (uint64_t step = 0; step < 6; ++step) {
    const std::string before = Masters();
    Kill();
    ASSERT_TRUE(Start().ok());
    EXPECT_TRUE(Status().recovered());
    EXPECT_EQ(Masters(), before);
    Rejoin();
    Push(step);
  }
  EXPECT_EQ(Masters(), undisturbed);
}

TEST_F(RecoveryTest, DealsAndTheNumberOfWorkersSurviveAKill) {
  const auto more_workers = [](JobOptions& options) { options.rule.max_workers = 3; };
  ASSERT_TRUE(Start(more_workers).ok());
  Begin();
  Push(0);
  ASSERT_TRUE(Scale(2).ok());
  ASSERT_TRUE(Join(0, 0, 1).ok());
  const auto heartbeat = [this](uint64_t dealt_until) {
    HeartbeatRequest stated;
    stated.set_incarnation(1);
    stated.set_epoch(starts_);
    stated.set_dealt_until(dealt_until);
    Pending<HeartbeatReply> pending;
    job_->Call(stated, pending.done());
    return pending.Get().value();
  };
  HeartbeatReply reply;
  AdvanceAndTick(absl::Seconds(1));
  AdvanceAndTick(absl::Seconds(1));
  while (reply.deals().empty()) {
    Tick();
    reply = heartbeat(0);
  }
  ASSERT_EQ(reply.deals_size(), 1);
  EXPECT_EQ(reply.deals(0).members_size(), 2);
  EXPECT_LE(reply.deals(0).step(), reply.dealt_until());
  AdvanceAndTick(absl::Seconds(6));  // a checkpoint begins
  Kill();

  ASSERT_TRUE(Start(more_workers).ok());
  const absl::StatusOr<JoinReply> joined = Join(/*incarnation=*/1, run_);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_EQ(joined->deals_size(), 1);
  EXPECT_EQ(joined->deals(0).SerializeAsString(), reply.deals(0).SerializeAsString());
  EXPECT_EQ(Status().target_workers(), 2u);
  EXPECT_EQ(Join(0, 0, 2).status().code(), absl::StatusCode::kOutOfRange);

  // Worker 1 does not return. The next deal waits for the promises to worker 0.
  clock_.Advance(absl::Seconds(6));
  heartbeat(90);
  AdvanceAndTick(absl::Seconds(6));
  clock_.Advance(absl::Seconds(1));
  while ((reply = heartbeat(90)).deals_size() < 2) Tick();
  EXPECT_EQ(reply.deals(1).members_size(), 1);
  EXPECT_EQ(reply.deals(1).step(), 90u);
}

TEST_F(RecoveryTest, AnAnnouncedModeSurvivesAKill) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Push(0);
  const absl::StatusOr<SetModeReply> reply = SetMode(Consistency::Mode::async);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->mode(), "sync");
  EXPECT_EQ(reply->step(), 9u);
  EXPECT_EQ(Status().mode(), "sync");
  EXPECT_EQ(Status().next_mode(), "async");
  EXPECT_EQ(Status().next_mode_step(), 9u);
  Kill();
  // From the log, and then from a checkpoint.
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Status().next_mode_step(), 9u);
  Rejoin();
  Push(1);
  AdvanceAndTick(absl::Seconds(1));
  AdvanceAndTick(absl::Seconds(6));
  while (Status().checkpoints() == 0) Tick();
  EXPECT_EQ(ReadCheckpoint(files_, kFolder)->shards[0].state.next_rule->from, Step{9});
  Kill();
  ASSERT_TRUE(Start().ok());
  Rejoin();
  for (uint64_t step = 2; step < 9; ++step) {
    EXPECT_EQ(Status().mode(), "sync");
    Push(step);
  }
  EXPECT_EQ(Status().mode(), "async");
  EXPECT_EQ(Status().next_mode(), "");
  Kill();
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Status().mode(), "async");
  const absl::StatusOr<JoinReply> joined = Join(/*incarnation=*/1, run_);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_FALSE(joined->by_round());
}

TEST_F(RecoveryTest, WithCheckpointsAloneTheModeStaysByRound) {
  ASSERT_TRUE(Start([](JobOptions& options) {
                options.durable->durability = Durability::kCheckpoint;
                options.rule.workers = 2;
                options.rule.quorum = 2;
                options.rule.max_workers = 2;
              }).ok());
  ASSERT_TRUE(Join().ok());
  EXPECT_EQ(SetMode(Consistency::Mode::async).status(),
            absl::InvalidArgumentError("mode: not possible with durability: checkpoint (expected "
                                       "sync or backup, got async)"));
  EXPECT_TRUE(SetMode(Consistency::Mode::backup).ok());
}

TEST_F(RecoveryTest, AModeThatAnotherSettingForbidsIsRefused) {
  ASSERT_TRUE(Start([](JobOptions& options) {
                options.rule = Rule::Async(1);
                options.staleness = {.policy = StalenessPolicy::kDrop, .bound = 3};
              }).ok());
  ASSERT_TRUE(Join().ok());
  EXPECT_EQ(SetMode(Consistency::Mode::sync).status(),
            absl::InvalidArgumentError("staleness_policy: drop is only valid with mode: ssp or "
                                       "async (got mode: sync)"));
}

TEST_F(RecoveryTest, AReductionGoesOnAfterAKillBeforeTheWorkersHaveLeft) {
  const auto two_workers = [](JobOptions& options) { options.rule.max_workers = 2; };
  ASSERT_TRUE(Start(two_workers).ok());
  Begin();
  ASSERT_TRUE(Scale(2).ok());
  ASSERT_TRUE(Join(0, 0, /*worker=*/1).ok());
  ASSERT_TRUE(Scale(1).ok());
  EXPECT_TRUE(IsRetired(1));
  Kill();
  ASSERT_TRUE(Start(two_workers).ok());
  EXPECT_EQ(Status().target_workers(), 1u);
  EXPECT_TRUE(IsRetired(1));
  // The reduction is in the next checkpoint, too.
  AdvanceAndTick(absl::Seconds(1));
  AdvanceAndTick(absl::Seconds(6));
  while (Status().checkpoints() == 0) Tick();
  EXPECT_EQ(ReadCheckpoint(files_, kFolder)->lead->target_workers, 1u);
  AdvanceAndTick(absl::Seconds(60));  // the lease of worker 1 ends
  EXPECT_FALSE(Status().workers(1).live());
  Tick();
  EXPECT_EQ(Status().target_workers(), 1u);
  EXPECT_TRUE(Scale(2).ok());
  EXPECT_FALSE(IsRetired(1));
  Kill();
  ASSERT_TRUE(Start(two_workers).ok());
  EXPECT_EQ(Status().target_workers(), 2u);
}

TEST_F(RecoveryTest, ADrainGoesOnAfterAKillBeforeTheWorkerHasLeft) {
  const auto two_workers = [](JobOptions& options) { options.rule.max_workers = 2; };
  ASSERT_TRUE(Start(two_workers).ok());
  Begin();
  ASSERT_TRUE(Scale(2).ok());
  ASSERT_TRUE(Join(0, 0, /*worker=*/1).ok());
  DrainRequest request;
  request.set_worker(1);
  Pending<DrainReply> drained;
  job_->Call(request, drained.done());
  ASSERT_TRUE(drained.Get().ok());
  Kill();

  ASSERT_TRUE(Start(two_workers).ok());
  EXPECT_TRUE(IsRetired(1, 1));
  ASSERT_TRUE(Join(/*incarnation=*/1, run_, /*worker=*/1).ok());
  EXPECT_TRUE(IsRetired(1, 1)) << "the process has joined again";
  EXPECT_FALSE(IsRetired(0, 1));
  // The drain is in the next checkpoint, too.
  Rejoin();
  AdvanceAndTick(absl::Seconds(1));
  AdvanceAndTick(absl::Seconds(6));
  while (Status().checkpoints() == 0) Tick();
  using Drained = std::vector<std::pair<WorkerId, Incarnation>>;
  EXPECT_EQ(ReadCheckpoint(files_, kFolder)->lead->drained,
            (Drained{{WorkerId{1}, Incarnation{1}}}));
  Kill();

  ASSERT_TRUE(Start(two_workers).ok());
  EXPECT_TRUE(IsRetired(1, 1));
  AdvanceAndTick(absl::Seconds(60));  // the lease of worker 1 ends
  const absl::StatusOr<JoinReply> next = Join(0, 0, /*worker=*/1);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(IsRetired(1, next->incarnation()));
}

TEST_F(RecoveryTest, WorkersThatDoNotFitIntoTheMemoryBudgetAreRefused) {
  uint64_t budget_bytes = uint64_t{1} << 30;
  const auto limited = [&budget_bytes](JobOptions& options) {
    options.rule.max_workers = 5'000;
    options.memory_budget_bytes = budget_bytes;
  };
  ASSERT_TRUE(Start(limited).ok());
  Begin();
  EXPECT_TRUE(Scale(100).ok());
  const absl::Status refused = Scale(4'000).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"expected at most 1073741824 bytes, its --memory_budget or else the "
                           "memory that was free at its start, got ",
                           "for the connections of 4000 workers"}) {
    EXPECT_TRUE(absl::StrContains(std::string(refused.message()), part)) << refused;
  }
  EXPECT_EQ(Status().target_workers(), 100u);
  // The number that was reached is part of the state.
  Kill();
  budget_bytes = uint64_t{200} << 20;
  const absl::Status too_small = Start(limited);
  EXPECT_TRUE(absl::StrContains(std::string(too_small.message()), "of 100 workers")) << too_small;
}

TEST_F(RecoveryTest, TokensSurviveAKillInTheLogAndInACheckpoint) {
  ASSERT_TRUE(Start().ok());
  Begin();
  const std::string token = Join(/*incarnation=*/1, run_)->token();
  // A token contains the second of its end, so two tokens of one process may differ.
  const WorkerTokens first("train", "key 1");
  EXPECT_EQ(first.Check(WorkerId{0}, Incarnation{1}, token), absl::OkStatus());
  for (const bool checkpoint : {false, true}) {
    if (checkpoint) {
      AdvanceAndTick(absl::Seconds(1));
      while (Status().checkpoints() == 0) AdvanceAndTick(absl::Seconds(1));
    }
    Kill();
    ASSERT_TRUE(Start().ok());
    EXPECT_EQ(job_->tokens().Check(WorkerId{0}, Incarnation{1}, token), absl::OkStatus());
    EXPECT_EQ(first.Check(WorkerId{0}, Incarnation{1}, Join(/*incarnation=*/1, run_)->token()),
              absl::OkStatus());
  }
}

TEST_F(RecoveryTest, APushOfAnEarlierProcessGetsItsVerdictAgain) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Push(0);
  const std::string before = Masters();
  Kill();
  ASSERT_TRUE(Start().ok());
  Rejoin();
  stream_->Send(PushesOf(0));
  for (int i = 0; i < 2; ++i) {
    const VerdictEntry verdict = stream_->NextVerdict();
    EXPECT_EQ(verdict.kind, kAccept);
    EXPECT_TRUE(verdict.again);
    stream_->NextParameters();
  }
  EXPECT_EQ(Masters(), before);
}

TEST_F(RecoveryTest, NoVerdictLeavesBeforeItsPushIsOnDisk) {
  ASSERT_TRUE(Start().ok());
  Begin();
  const std::string before = Masters();
  absl::Notification syncing, go_on;
  files_.BeforeSync([&] {
    if (!syncing.HasBeenNotified()) syncing.Notify();
    go_on.WaitForNotification();
  });
  stream_->Send(PushesOf(0));
  syncing.WaitForNotification();
  EXPECT_EQ(Masters(), before);
  go_on.Notify();
  EXPECT_EQ(stream_->NextVerdict().kind, kAccept);
  EXPECT_NE(Masters(), before);
}

TEST_F(RecoveryTest, MessagesForAnEarlierProcessAreRefused) {
  ASSERT_TRUE(Start().ok());
  Begin();
  const WorkerFrame old = PushesOf(0);
  Kill();
  ASSERT_TRUE(Start().ok());
  Rejoin();
  stream_->Send(old);
  EXPECT_TRUE(absl::StrContains(std::string(stream_->AwaitEnd().message()), "restarted"));
}

TEST_F(RecoveryTest, AnotherRunIsRefusedAndTheNextProcessGetsTheNextIncarnation) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Kill();
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Join(1, run_ + 1).status().code(), absl::StatusCode::kFailedPrecondition);
  AdvanceAndTick(absl::Minutes(1));  // the lease of the earlier process ends
  const absl::StatusOr<JoinReply> next = Join();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->incarnation(), 2u);
  EXPECT_EQ(next->run(), run_);
}

TEST_F(RecoveryTest, AWorkerThatDoesNotComeBackExpires) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Kill();
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(Status().workers(0).live());
  AdvanceAndTick(absl::Seconds(11));
  EXPECT_FALSE(Status().workers(0).live());
}

TEST_F(RecoveryTest, ACheckpointReplacesTheLogUpToItsTime) {
  ASSERT_TRUE(Start().ok());
  Begin();
  uint64_t step = 0;
  Tick();
  while (Status().checkpoints() < 2) {
    Push(step++);
    AdvanceAndTick(absl::Seconds(6));
    Rejoin();  // the lease has ended
    ASSERT_LT(step, 1000u);
  }
  const StatusReply status = Status();
  EXPECT_EQ(status.failed_checkpoints(), 0u);
  // Each checkpoint has 7 masters and 7 momenta, and the heads of two files.
  EXPECT_GE(status.checkpoint_bytes(), 2u * 14 * sizeof(float));
  EXPECT_LT(status.checkpoint_bytes(), 10'000u);
  Push(step++);
  const std::string before = Masters();
  Kill();
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Masters(), before);
  Rejoin();
  Push(step);
}

TEST_F(RecoveryTest, AKeptLogHoldsTheWholeRun) {
  EXPECT_TRUE(ReplayAfterCheckpoint(/*keep_log=*/true).ok());
}

TEST_F(RecoveryTest, ACheckpointRemovesOlderSegments) {
  EXPECT_TRUE(absl::IsDataLoss(ReplayAfterCheckpoint(/*keep_log=*/false)));
}

TEST_F(RecoveryTest, AFailedCheckpointIsCountedAndTheNextOneSucceeds) {
  // Without the end of a lease, a tick writes nothing to the log.
  ASSERT_TRUE(Start([](JobOptions& options) { options.lease = absl::Hours(1); }).ok());
  Begin();
  Push(0);
  Tick();
  files_.FailFlushAt(1);
  AdvanceAndTick(absl::Seconds(6));
  while (Status().failed_checkpoints() == 0) ASSERT_FALSE(failed_.HasBeenNotified());
  EXPECT_EQ(Status().checkpoints(), 0u);
  EXPECT_EQ(Status().checkpoint_bytes(), 0u);
  AdvanceAndTick(absl::Seconds(6));
  while (Status().checkpoints() == 0) ASSERT_FALSE(failed_.HasBeenNotified());
  EXPECT_EQ(Status().failed_checkpoints(), 1u);
  EXPECT_GT(Status().checkpoint_bytes(), 0u);
}

TEST_F(RecoveryTest, AStoppedServerLeavesACheckpointOfItsWholeState) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Push(0);
  Push(1);
  absl::Notification stopped;
  job_->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  Stop();
  const absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(files_, kFolder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_EQ(checkpoint->shards.size(), 2u);
  for (const SavedShard& saved : checkpoint->shards) {
    EXPECT_EQ(saved.state.store.version, Version{2});
  }
}

TEST_F(RecoveryTest, TheStateOfAnotherJobOrConfigurationIsRefused) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Stop();
  const absl::Status job = Start([](JobOptions& options) { options.name = "other"; });
  EXPECT_EQ(job.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(std::string(job.message()), "expected \"other\", got \"train\""))
      << job;
  Stop();
  const absl::Status servers = Start([](JobOptions& options) { options.server_count = 2; });
  EXPECT_EQ(servers.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(std::string(servers.message()),
                                "the saved job has another configuration: servers"))
      << servers;
}

TEST_F(RecoveryTest, AServerThatCannotWriteItsLogAnswersNothing) {
  ASSERT_TRUE(Start().ok());
  Begin();
  Push(0);
  const std::string before = Masters();
  files_.SetFreeBytes(10);
  stream_->Send(PushesOf(1));
  failed_.WaitForNotification();
  EXPECT_EQ(Masters(), before);
  absl::Notification stopped;
  job_->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  Kill();
  files_.SetFreeBytes(1 << 20);
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Masters(), before);
}

}  // namespace
}  // namespace thinwire
