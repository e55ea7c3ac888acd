// Tests durability: checkpoint with several servers in one process and in virtual time: checkpoints
// at the same step, and rollbacks after servers were lost.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/memory/array_bytes.h"
#include "common/model/partition.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/schedule_spec.h"
#include "common/time/virtual_time.h"
#include "glog/logging.h"
#include "gtest/gtest.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/durable/checkpoint.h"
#include "server/durable/state_folder.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "server/job/testing/direct_peers.h"
#include "server/job/testing/test_stream.h"
#include "server/protocols/checkpoints/rollback_plan.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/state/membership.h"

namespace thinwire {
namespace {

constexpr uint32_t kFp32 = 1;
constexpr auto kAccept = static_cast<uint32_t>(Verdict::kAccept);
constexpr auto kStale = static_cast<uint32_t>(Verdict::kStale);
constexpr char kFolder[] = "/state";
constexpr absl::Duration kInterval = absl::Hours(1);
constexpr int kMostTicks = 100'000;

// A server process with its disk, which survives the process.
struct Server {
  FaultyFiles files;
  VirtualTime disk_time;      // of its tasks in the background
  bool is_disk_held = false;  // the tasks do not run
  std::unique_ptr<Job> job;
  uint64_t epoch = 0;
  uint64_t awaited_count = 0;  // checkpoints of this process for which the test has waited
  bool restart_wanted = false;
  absl::Status failure;
};

// A worker process: its identity and its streams to the servers.
struct Worker {
  uint32_t number = 0;
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  bool had_begun = false;  // JoinRequest.had_begun
  std::vector<std::unique_ptr<TestStream>> streams;
};

class RollbackTest : public testing::Test {
 protected:
  static constexpr uint32_t kServers = 2;

  RollbackTest() : servers_(kServers) {
    for (auto& server : servers_) {
      server = std::make_unique<Server>();
      EXPECT_TRUE(server->files.MakeFolder(kFolder).ok());
      EXPECT_TRUE(server->files.SyncFolder("/").ok());
    }
  }
  ~RollbackTest() override {
    for (Worker* worker : {&w0_, &w1_}) worker->streams.clear();
    for (uint32_t s = 0; s < kServers; ++s) Remove(s);
  }

  // Starts server S with the state on its disk. IN_PLACE: after a rollback.
  absl::Status StartServer(uint32_t s, bool in_place = false) {
    Server& server = *servers_[s];
    ++starts_;
    // The clock of the machine is set back before every start.
    const absl::Time now = absl::UnixEpoch() + absl::Seconds(1000) - absl::Seconds(starts_);
    const auto epoch = NextEpoch(server.files, kFolder, now);
    if (!epoch.ok()) return epoch.status();
    server.epoch = epoch->value;
    server.awaited_count = 0;
    server.restart_wanted = false;
    server.failure = absl::OkStatus();
    JobOptions options;
    options.rule = rule_;
    options.server = ServerId{s};
    options.server_count = kServers;
    options.epoch = Epoch{server.epoch};
    options.run = RunId{1000 + starts_};
    options.token_key = absl::StrCat("key ", starts_);
    options.lease = lease_;
    options.clip_norm = clip_norm_;
    options.durable =
        DurableOptions{.files = &server.files,
                       .folder = kFolder,
                       .durability = durability_,
                       .checkpoint_interval = kInterval,
                       .retention = retention_,
                       .awaits_rollback = !in_place,
                       .failed = [&server](const absl::Status& status) { server.failure = status; },
                       .restart = [&server] { server.restart_wanted = true; }};
    const auto generation = BeginGeneration(*options.durable, rule_.fold);
    if (!generation.ok()) return generation.status();
    options.generation = *generation;
    if (!is_durable_) options.durable.reset();
    std::unique_ptr<Peers> peers;
    if (s == 0) {
      peers = std::make_unique<DirectPeers>([this](ServerId id) -> Job* {
        return cut_.contains(id.value) ? nullptr : servers_[id.value]->job.get();
      });
    }
    options.group_updates = {
        {MakeOptimizer({.kind = OptimizerKind::kMomentum, .parameter_average = 0.9}).value(),
         Schedule::Make(schedule_).value()}};
    const JobExecutors executors = {
        .threads = time_, .background = server.disk_time, .shards = time_, .unix_clock = time_};
    server.job = std::make_unique<Job>(options, time_, executors, std::move(peers));
    return server.job->Recover();
  }
  void StartServers() {
    for (uint32_t s = 0; s < kServers; ++s) ASSERT_TRUE(StartServer(s).ok());
  }
  // Destroys the job of server S.
  void Remove(uint32_t s) {
    for (Worker* worker : {&w0_, &w1_}) {
      if (!worker->streams.empty()) worker->streams[s].reset();
    }
    servers_[s]->job.reset();
  }
  // Kills the process of server S, which has no work left; its disk keeps only what was flushed.
  void Kill(uint32_t s) {
    RunDueTasks();
    servers_[s]->files.Crash();
    Remove(s);
    servers_[s]->files.Restart();
  }
  // Starts server S again with an empty folder.
  void RestartWithoutState(uint32_t s) {
    Kill(s);
    servers_[s] = std::make_unique<Server>();
    ASSERT_TRUE(servers_[s]->files.MakeFolder(kFolder).ok());
    ASSERT_TRUE(servers_[s]->files.SyncFolder("/").ok());
    ASSERT_TRUE(StartServer(s).ok());
  }
  void SetReachable(uint32_t s, bool reachable) {
    if (reachable) {
      cut_.erase(s);
    } else {
      cut_.insert(s);
    }
  }

  StatusReply Status(uint32_t s) {
    Pending<StatusReply> pending(run_task_);
    servers_[s]->job->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  // Returns the mode that server S follows, or the one that it will follow.
  std::string NewestMode(uint32_t s) {
    const StatusReply status = Status(s);
    return status.next_mode().empty() ? status.mode() : status.next_mode();
  }
  // Changes the mode at the lead.
  absl::StatusOr<SetModeReply> SetMode(const SetModeRequest& request) {
    Pending<SetModeReply> change(run_task_);
    servers_[0]->job->Call(request, change.done());
    return change.Get();
  }
  // Returns the tasks that run next: those that are due, else those of a disk; null if there are
  // none.
  VirtualTime* DueTasks() {
    if (time_.next() <= time_.elapsed()) return &time_;
    for (const auto& server : servers_) {
      if (!server->is_disk_held && !server->disk_time.empty()) return &server->disk_time;
    }
    return nullptr;
  }
  void RunTask() {
    VirtualTime* const tasks = DueTasks();
    CHECK(tasks != nullptr) << "nothing is left that could end the wait";
    tasks->RunNext();
  }
  void RunDueTasks() {
    while (DueTasks() != nullptr) RunTask();
  }
  void Advance(absl::Duration duration) {
    RunDueTasks();
    time_.After(duration, [] {});
    time_.RunNext();
    RunDueTasks();
  }

  void Stop(uint32_t s) {
    bool stopped = false;
    servers_[s]->job->Stop([&stopped] { stopped = true; });
    while (!stopped) RunTask();
  }
  void TickLead() { Tick(0); }
  void Tick(uint32_t s) {
    bool done = false;
    servers_[s]->job->Tick([&done] { done = true; });
    while (!done) RunTask();
  }
  // Ticks the lead, and restarts servers in place, until DONE returns true.
  void TickUntil(const std::function<bool()>& done) {
    for (int i = 0; i < kMostTicks; ++i) {
      if (done()) return;
      TickLead();
      for (uint32_t s = 0; s < kServers; ++s) {
        if (servers_[s]->job == nullptr || !servers_[s]->restart_wanted) continue;
        Remove(s);
        const absl::Status status = StartServer(s, /*in_place=*/true);
        ASSERT_TRUE(status.ok()) << status;
      }
      // The lead calls the other servers about twice a second.
      Advance(absl::Milliseconds(10));
    }
    FAIL() << "no end";
  }
  // Ticks until both servers serve GENERATION and a worker can join them.
  void AwaitGeneration(uint64_t generation) {
    TickUntil([&] {
      for (uint32_t s = 0; s < kServers; ++s) {
        const StatusReply status = Status(s);
        if (status.generation() != generation || status.awaits_rollback()) return false;
      }
      return Join(0, w0_).ok();
    });
  }
  // Ticks the lead COUNT times. The servers answer its calls before the next tick.
  void RunTicks(int count) {
    for (int i = 0; i < count; ++i) {
      TickLead();
      Advance(absl::Milliseconds(10));
    }
  }
  // Advances the time by an interval and waits until the lead has announced a step, which the other
  // server knows. Returns the step.
  uint64_t Announce() {
    const std::optional<uint64_t> before = AnnouncedStep();
    TickLead();
    Advance(2 * kInterval);
    TickUntil([&] { return AnnouncedStep() != before; });
    // Another round of calls ends after the announcement has arrived.
    RunTicks(100);
    return *AnnouncedStep();
  }
  std::optional<uint64_t> AnnouncedStep() {
    Pending<HeartbeatReply> pending(run_task_);
    servers_[0]->job->Call(HeartbeatRequest(), pending.done());
    const HeartbeatReply reply = pending.Get().value();
    return reply.has_checkpoint_step() ? std::optional(reply.checkpoint_step()) : std::nullopt;
  }
  std::vector<Step> StepsOf(uint32_t s) {
    std::vector<Step> steps;
    const auto aligned = ListAlignedCheckpoints(servers_[s]->files, kFolder).value();
    for (const AlignedCheckpoint& checkpoint : aligned) steps.push_back(checkpoint.step);
    return steps;
  }
  bool HasStep(uint32_t s, uint64_t step) {
    const std::vector<Step> steps = StepsOf(s);
    return std::ranges::count(steps, Step{step}) > 0;
  }
  // Ticks until both servers have completed their next checkpoint, which is that of STEP.
  void AwaitCheckpoint(uint64_t step) {
    for (const auto& server : servers_) ++server->awaited_count;
    TickUntil([&] {
      for (uint32_t s = 0; s < kServers; ++s) {
        if (!HasStep(s, step) || Status(s).checkpoints() < servers_[s]->awaited_count) return false;
      }
      return true;
    });
  }

  // Asks server S for a checkpoint of all servers.
  Pending<SaveCheckpointReply> StartSave(uint32_t s = 0, double seconds = 86400) {
    SaveCheckpointRequest request;
    request.set_seconds(seconds);
    Pending<SaveCheckpointReply> pending(run_task_);
    servers_[s]->job->Call(request, pending.done());
    return pending;
  }
  absl::StatusOr<SaveCheckpointReply> Save() {
    Pending<SaveCheckpointReply> pending = StartSave();
    TickUntil([&] { return pending.ready(); });
    return pending.Get();
  }
  // Asks server S to send all servers back to STEP.
  absl::StatusOr<RestoreCheckpointReply> Restore(uint64_t step, uint32_t s = 0) {
    RestoreCheckpointRequest request;
    request.set_step(step);
    Pending<RestoreCheckpointReply> pending(run_task_);
    servers_[s]->job->Call(request, pending.done());
    TickUntil([&] { return pending.ready(); });
    return pending.Get();
  }
  static void ExpectSteps(const absl::StatusOr<SaveCheckpointReply>& reply, uint64_t step) {
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->least_step(), step);
    EXPECT_EQ(reply->largest_step(), step);
  }
  static void ExpectLostState(const absl::Status& status, uint32_t s) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    const std::string expected = absl::StrCat("server ", s, " lost its state: ");
    EXPECT_TRUE(absl::StrContains(std::string(status.message()), expected)) << status;
  }
  absl::StatusOr<JoinReply> Join(uint32_t s, const Worker& worker) {
    return StartJoin(s, worker).Get();
  }
  Pending<JoinReply> StartJoin(uint32_t s, const Worker& worker) {
    const uint64_t run = worker.incarnation == 0 ? 0 : run_;
    JoinRequest request = JoinRequestOf(partition_, worker.number, worker.incarnation, run);
    request.set_planned_examples(planned_examples_);
    request.set_had_begun(worker.had_begun);
    Pending<JoinReply> pending(run_task_);
    servers_[s]->job->Join(
        request, [] { return false; }, pending.done());
    return pending;
  }
  // Joins all servers, as a new process or as the one that WORKER is.
  void JoinAll(Worker& worker) {
    worker.streams.clear();
    for (uint32_t s = 0; s < kServers; ++s) {
      const absl::StatusOr<JoinReply> reply = Join(s, worker);
      ASSERT_TRUE(reply.ok()) << reply.status();
      worker.incarnation = reply->incarnation();
      worker.generation = reply->generation();
      run_ = reply->run();
      worker.streams.push_back(std::make_unique<TestStream>(*servers_[s]->job, run_task_));
    }
  }
  void LeaveServer(const Worker& worker, uint32_t s) {
    LeaveRequest request;
    request.set_worker(worker.number);
    request.set_incarnation(worker.incarnation);
    request.set_run(run_);
    Pending<LeaveReply> pending(run_task_);
    servers_[s]->job->Call(request, pending.done());
    ASSERT_TRUE(pending.Get().ok());
  }
  void Leave(Worker& worker) {
    for (uint32_t s = 0; s < kServers; ++s) LeaveServer(worker, s);
    worker = Worker{.number = worker.number};
  }
  WorkerFrame FrameOf(const Worker& worker, uint32_t s) const {
    WorkerFrame frame;
    frame.worker = {worker.number};
    frame.incarnation = {worker.incarnation};
    frame.generation = {worker.generation};
    frame.epoch = Epoch{servers_[s]->epoch};
    return frame;
  }
  void SendReads(Worker& worker, uint64_t step, bool seed = false) {
    for (uint32_t s = 0; s < kServers; ++s) {
      WorkerFrame frame = FrameOf(worker, s);
      for (const ShardId shard : partition_.ShardsOf(ServerId{s})) {
        if (seed) {
          frame.seeds.push_back(
              {shard, Payload(std::vector<float>(partition_.value_count(shard), 1))});
        }
        frame.reads.push_back({shard, {step}, {0}, kFp32});
      }
      worker.streams[s]->Send(frame);
    }
  }
  void AwaitParameters(Worker& worker, uint64_t step) {
    for (uint32_t s = 0; s < kServers; ++s) {
      for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
        EXPECT_EQ(worker.streams[s]->NextParameters().step, Step{step});
      }
    }
  }
  void SendPushes(Worker& worker, uint64_t step) {
    for (uint32_t s = 0; s < kServers; ++s) SendPushesTo(worker, s, step);
  }
  void SendPushesTo(Worker& worker, uint32_t s, uint64_t step) {
    WorkerFrame frame = FrameOf(worker, s);
    for (const ShardId shard : partition_.ShardsOf(ServerId{s})) {
      PushEntry& push = frame.pushes.emplace_back();
      push.shard = shard;
      push.step = {step};
      push.examples = 4;
      push.read_codec = kFp32;
      const float value = 0.25f + static_cast<float>(step) + 0.125f * worker.number;
      push.payload = Payload(std::vector<float>(partition_.value_count(shard), value));
    }
    worker.streams[s]->Send(frame);
  }
  void AwaitAccepted(Worker& worker, uint64_t step) {
    for (uint32_t s = 0; s < kServers; ++s) {
      for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
        EXPECT_EQ(worker.streams[s]->NextVerdict().kind, kAccept);
        EXPECT_EQ(worker.streams[s]->NextParameters().step, Step{step + 1});
      }
    }
  }

  // Worker 0 joins, sends the first values and reads step 0. Both servers then have a checkpoint of
  // step 0.
  void Begin() {
    JoinAll(w0_);
    SendReads(w0_, 0, /*seed=*/true);
    AwaitParameters(w0_, 0);
    AwaitCheckpoint(0);
    masters_[0] = Masters();
  }
  // Worker 0 joins a job of two workers and sends the first values. Both servers then have a
  // checkpoint of step 0.
  void BeginBeforeTheOtherWorker() {
    JoinAll(w0_);
    SendReads(w0_, 0, /*seed=*/true);
    AwaitCheckpoint(0);
  }
  // Worker 0 trains up to step UNTIL. Remembers the masters before every step.
  void Train(uint64_t until) {
    for (; step_ < until; ++step_) {
      SendPushes(w0_, step_);
      AwaitAccepted(w0_, step_);
      masters_[step_ + 1] = Masters();
    }
  }
  // Worker 0 joins again and goes on from STEP.
  void Resume(uint64_t step) {
    JoinAll(w0_);
    SendReads(w0_, step);
    AwaitParameters(w0_, step);
    step_ = step;
  }
  // Trains until both servers have a checkpoint of a new announced step. Returns the step.
  uint64_t TrainToCheckpoint() {
    const uint64_t step = Announce();
    Train(step);
    AwaitCheckpoint(step);
    return step;
  }
  // Returns the bytes of all masters of both servers and their averages.
  std::string Masters() {
    std::string bytes;
    MastersRequest request;
    for (const bool averages : {false, true}) {
      request.set_averages(averages);
      for (uint32_t s = 0; s < kServers; ++s) {
        for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
          Pending<std::vector<MastersChunk>> pending(run_task_);
          servers_[s]->job->Masters(request, i, pending.done());
          const std::vector<MastersChunk> chunks = pending.Get().value();
          for (const MastersChunk& chunk : chunks) bytes += chunk.values();
        }
      }
    }
    return bytes;
  }

  Rule rule_ = Rule::Sync(1);
  Durability durability_ = Durability::kCheckpoint;
  bool is_durable_ = true;
  RetentionSpec retention_;
  double clip_norm_ = 0;
  absl::Duration lease_ = absl::Hours(1000);
  ScheduleSpec schedule_ = {.learning_rate = 0.5};
  uint64_t planned_examples_ = 0;
  const Partition partition_ =
      Partition::Make({{"w", {64, 64}}, {"v", {64, 64}}, {"b", {3}}}, 4096, kServers).value();
  VirtualTime time_;
  const std::function<void()> run_task_ = [this] { RunTask(); };
  uint64_t starts_ = 0;
  uint64_t run_ = 0;
  Worker w0_ = {.number = 0};
  Worker w1_ = {.number = 1};
  uint64_t step_ = 0;                        // the next step of worker 0
  std::map<uint64_t, std::string> masters_;  // before each step
  std::set<uint32_t> cut_;                   // servers that the lead cannot reach
  std::vector<std::unique_ptr<Server>> servers_;
};

TEST_F(RollbackTest, CheckpointsAreMadeAtTheAnnouncedStep) {
  StartServers();
  Begin();
  Train(3);
  const uint64_t step = Announce();
  EXPECT_GT(step, 3u);
  Train(step + 2);
  AwaitCheckpoint(step);
  for (uint32_t s = 0; s < kServers; ++s) {
    const auto aligned = ListAlignedCheckpoints(servers_[s]->files, kFolder).value();
    EXPECT_EQ(aligned.back().step, Step{step});
    const Checkpoint saved =
        ReadNamedCheckpoint(servers_[s]->files, kFolder, aligned.back().name).value();
    ASSERT_FALSE(saved.shards.empty());
    for (const SavedShard& shard : saved.shards) {
      EXPECT_EQ(shard.state.frontier, Step{step});
      EXPECT_EQ(shard.state.store.version, Version{step});
    }
  }
}

TEST_F(RollbackTest, AKilledServerSendsAllServersBackToTheSameStep) {
  StartServers();
  Begin();
  Train(30);
  const std::string undisturbed = Masters();
  // The same steps once more, with a rollback.
  const uint64_t step = TrainToCheckpoint();
  ASSERT_GT(step, 30u);
  Train(step + 3);
  const std::string lost = Masters();
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  EXPECT_TRUE(Status(1).awaits_rollback());
  const absl::Status refused = Join(1, w0_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.message(),
            "server 1 waits for server 0 to choose the checkpoint to continue from");
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[step]);
  Resume(step);
  EXPECT_EQ(w0_.generation, 2u);
  EXPECT_EQ(w0_.incarnation, 1u);
  Train(step + 3);
  EXPECT_EQ(Masters(), lost) << "the repeated steps have the same bits";
  EXPECT_NE(Masters(), undisturbed);
}

TEST_F(RollbackTest, AKilledLeadSendsAllServersBack) {
  StartServers();
  Begin();
  const uint64_t step = TrainToCheckpoint();
  Train(step + 2);
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  EXPECT_EQ(Join(0, w0_).status().message(),
            "server 0 waits for all servers to choose the checkpoint to continue from");
  EXPECT_TRUE(absl::IsUnavailable(SetMode(SetModeRequest()).status()))
      << "the rollback would forget it";
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[step]);
  Resume(step);
  Train(step + 2);
}

// The rounds after the rollback are summed anew, also those that waited for their norm before it.
TEST_F(RollbackTest, ClippedRoundsGoBack) {
  clip_norm_ = 10;
  StartServers();
  Begin();
  const uint64_t step = TrainToCheckpoint();
  Train(step + 3);
  const std::string lost = Masters();
  EXPECT_GT(Status(0).clipped_updates(), step);
  for (uint32_t killed = 0; killed < kServers; ++killed) {
    SendPushesTo(w0_, 1 - killed, step_);
    Kill(killed);
    ASSERT_TRUE(StartServer(killed).ok());
    AwaitGeneration(2 + killed);
    EXPECT_EQ(Masters(), masters_[step]);
    Resume(step);
    Train(step + 3);
    EXPECT_EQ(Masters(), lost) << "the repeated steps have the same bits";
  }
}

TEST_F(RollbackTest, ServersThatAreKilledTogetherGoBack) {
  StartServers();
  Begin();
  const std::string token = servers_[0]->job->tokens().Of(WorkerId{0}, Incarnation{1});
  const uint64_t step = TrainToCheckpoint();
  Train(step + 1);
  for (int round = 2; round < 5; ++round) {
    Kill(0);
    Kill(1);
    ASSERT_TRUE(StartServer(1).ok());
    ASSERT_TRUE(StartServer(0).ok());
    AwaitGeneration(static_cast<uint64_t>(round));
    EXPECT_EQ(Masters(), masters_[step]);
    // The run has kept its key.
    for (const auto& server : servers_) {
      EXPECT_EQ(server->job->tokens().Check(WorkerId{0}, Incarnation{1}, token), absl::OkStatus());
    }
    Resume(step);
    Train(step + 2);
  }
}

TEST_F(RollbackTest, TheFirstValuesAreACheckpoint) {
  StartServers();
  Begin();
  Train(2);
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[0]);
  Resume(0);
  Train(5);
}

// The lead has gone back, durably, when all processes are killed.
TEST_F(RollbackTest, ACrashBetweenTheRollbacksOfTwoServersIsRepaired) {
  StartServers();
  Begin();
  const uint64_t step = TrainToCheckpoint();
  Train(step + 1);
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  for (int i = 0; i < kMostTicks && !servers_[0]->restart_wanted; ++i) RunTicks(1);
  ASSERT_TRUE(servers_[0]->restart_wanted);
  Kill(0);
  Kill(1);
  ASSERT_TRUE(StartServer(0).ok());
  ASSERT_TRUE(StartServer(1).ok());
  EXPECT_EQ(Status(0).generation(), 2u);
  EXPECT_EQ(Status(1).generation(), 1u);
  // The other server follows first; the lead, which was started again, then asks for a new
  // rollback.
  AwaitGeneration(3);
  EXPECT_EQ(Masters(), masters_[step]);
  Resume(step);
  Train(step + 2);
}

TEST_F(RollbackTest, AMissingCheckpointLeadsToAnOlderCommonOne) {
  StartServers();
  Begin();
  const uint64_t first = TrainToCheckpoint();
  servers_[1]->files.SetFreeBytes(10);
  const uint64_t second = Announce();
  Train(second + 1);
  TickUntil([&] { return HasStep(0, second); });
  Kill(1);
  servers_[1]->files.SetFreeBytes(uint64_t{1} << 40);
  EXPECT_FALSE(HasStep(1, second));
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[first]);
  EXPECT_FALSE(HasStep(0, second)) << "the abandoned checkpoint is removed";
  Resume(first);
  Train(first + 2);
}

TEST_F(RollbackTest, AServerThatHearsOfTheStepTooLateMakesNoCommonCheckpoint) {
  StartServers();
  Begin();
  const uint64_t first = TrainToCheckpoint();
  SetReachable(1, false);
  const uint64_t second = Announce();
  Train(second + 3);
  SetReachable(1, true);
  TickUntil(
      [&] { return HasStep(0, second) && !StepsOf(1).empty() && StepsOf(1).back().value > first; });
  EXPECT_FALSE(HasStep(1, second));
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[first]);
}

// Each server fails to write every second checkpoint, because its disk is full.
TEST_F(RollbackTest, ServersThatMissStepsInTurnKeepTheirCommonCheckpoint) {
  StartServers();
  Begin();
  const uint64_t common = TrainToCheckpoint();
  for (uint32_t round = 0; round < 6; ++round) {
    const uint32_t failing = round % 2;
    const uint64_t failed_before = Status(failing).failed_checkpoints();
    servers_[failing]->files.SetFreeBytes(10);
    const uint64_t step = Announce();
    Train(step + 1);
    TickUntil([&] {
      return HasStep(1 - failing, step) && Status(failing).failed_checkpoints() > failed_before;
    });
    servers_[failing]->files.SetFreeBytes(uint64_t{1} << 40);
    EXPECT_FALSE(HasStep(failing, step));
  }
  for (uint32_t s = 0; s < kServers; ++s) {
    // Old checkpoints are removed after the newest one is complete.
    TickUntil([&] { return StepsOf(s).size() <= 3; });
    EXPECT_EQ(StepsOf(s).size(), 3u) << "server " << s;
  }
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[common]);
}

TEST_F(RollbackTest, ServersWithoutACommonStepEndTheJob) {
  StartServers();
  Begin();
  Train(2);
  Kill(1);
  Checkpoint other = ReadCheckpoint(servers_[1]->files, kFolder).value();
  const std::vector<std::string> names = ListCheckpoints(servers_[1]->files, kFolder).value();
  other.step = Step{77};
  other.run.generation = Generation{1};
  // The newest checkpoints all have another step.
  for (size_t i = 0; i < names.size() + 3; ++i) {
    ASSERT_TRUE(WriteCheckpoint(servers_[1]->files, kFolder, other).ok());
  }
  ASSERT_TRUE(StartServer(1).ok());
  TickUntil([&] { return !servers_[0]->failure.ok(); });
  EXPECT_EQ(
      servers_[0]->failure.message(),
      "rollback: the servers have no checkpoint of the same step (expected a common step, got "
      "server 0: 0; server 1: 77)");
}

TEST_F(RollbackTest, AServerThatLostItsFolderEndsTheJobOfALeadThatWaits) {
  StartServers();
  Begin();
  Kill(0);
  Kill(1);
  servers_[1] = std::make_unique<Server>();
  ASSERT_TRUE(servers_[1]->files.MakeFolder(kFolder).ok());
  ASSERT_TRUE(StartServer(0).ok());
  ASSERT_TRUE(StartServer(1).ok());
  TickUntil([&] { return !servers_[0]->failure.ok(); });
  EXPECT_TRUE(
      absl::StrContains(std::string(servers_[0]->failure.message()), "server 1 lost its state"))
      << servers_[0]->failure;
}

TEST_F(RollbackTest, ANewProcessGetsAnIncarnationThatNoEarlierGenerationHasAssigned) {
  StartServers();
  Begin();
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  AwaitGeneration(2);
  Resume(0);
  Leave(w0_);
  JoinAll(w0_);
  EXPECT_EQ(w0_.incarnation, Membership::kIncarnationsPerGeneration + 1);
}

TEST_F(RollbackTest, AProcessThatTheCheckpointDoesNotKnowMayJoinAgain) {
  rule_ = Rule::Sync(2, /*ordered_fold=*/true);
  StartServers();
  BeginBeforeTheOtherWorker();
  JoinAll(w1_);
  SendReads(w1_, 0);
  AwaitParameters(w0_, 0);
  AwaitParameters(w1_, 0);
  Kill(0);
  Kill(1);
  ASSERT_TRUE(StartServer(0).ok());
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  JoinAll(w0_);
  JoinAll(w1_);
  EXPECT_EQ(w1_.incarnation, 1u);
  SendReads(w0_, 0);
  SendReads(w1_, 0);
  AwaitParameters(w0_, 0);
  AwaitParameters(w1_, 0);
}

// The shards of a checkpoint of step 0 have not begun to train. A worker that had trained before the
// rollback waits for the others as long as their leases, not as long as at the start of a job.
TEST_F(RollbackTest, AfterARollbackToTheFirstStepALostWorkerIsMissedForALeaseOnly) {
  rule_ = Rule::Sync(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  JoinAll(w1_);
  SendReads(w1_, 0);
  AwaitParameters(w0_, 0);
  AwaitParameters(w1_, 0);
  lease_ = absl::Seconds(10);
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  w0_.had_begun = true;
  AwaitGeneration(2);
  JoinAll(w0_);
  SendReads(w0_, 0);
  Advance(lease_ / 2);
  JoinAll(w0_);
  SendReads(w0_, 0);
  Advance(lease_ / 2 + absl::Seconds(1));
  for (uint32_t s = 0; s < kServers; ++s) {
    Tick(s);
    RunDueTasks();
    const StatusReply status = Status(s);
    for (const auto& shard : status.shards()) EXPECT_TRUE(shard.open()) << "server " << s;
  }
  AwaitParameters(w0_, 0);
}

TEST_F(RollbackTest, AStoppedRunGoesOnFromItsLastStep) {
  StartServers();
  Begin();
  Train(7);
  Leave(w0_);
  for (uint32_t s = 0; s < kServers; ++s) {
    Stop(s);
    Remove(s);
    EXPECT_TRUE(HasStep(s, 7)) << s;
  }
  StartServers();
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[7]);
}

// Two workers train, leave and are started again. Training waits for both, so the parameters are
// those of a run without a stop.
class ResumedRunTest : public RollbackTest, public testing::WithParamInterface<Durability> {
 protected:
  // Both workers join; worker 0 sends the first values if they are missing.
  void JoinBoth(uint64_t step) {
    JoinAll(w0_);
    SendReads(w0_, step, /*seed=*/step == 0);
    // Worker 0 is ahead: it may not train alone.
    JoinAll(w1_);
    SendReads(w1_, step);
    AwaitParameters(w0_, step);
    AwaitParameters(w1_, step);
  }
  void TrainBoth(uint64_t from, uint64_t until) {
    for (uint64_t step = from; step < until; ++step) {
      SendPushes(w0_, step);
      SendPushes(w1_, step);
      AwaitAccepted(w0_, step);
      AwaitAccepted(w1_, step);
    }
  }
  void StopServers() {
    for (uint32_t s = 0; s < kServers; ++s) Stop(s);
    for (uint32_t s = 0; s < kServers; ++s) Remove(s);
  }
  // Starts the servers of a run that was stopped in order, up to where its workers can join.
  void RestartServers() {
    StartServers();
    if (durability_ != Durability::kCheckpoint) return;
    TickUntil([&] { return Status(0).generation() == 2 && Status(1).generation() == 2; });
    TickUntil([&] { return Join(0, w0_).status().code() != absl::StatusCode::kUnavailable; });
    // The Join was that of another process, which has left again.
    w0_.incarnation = Membership::kIncarnationsPerGeneration + 1;
  }
};

TEST_P(ResumedRunTest, AResumedRunHasTheBitsOfAnUninterruptedOne) {
  rule_ = Rule::Sync(2, /*ordered_fold=*/true);
  durability_ = GetParam();
  StartServers();
  JoinBoth(0);
  TrainBoth(0, 9);
  const std::string uninterrupted = Masters();
  Leave(w0_);
  Leave(w1_);
  StopServers();
  for (auto& server : servers_) {
    server = std::make_unique<Server>();
    ASSERT_TRUE(server->files.MakeFolder(kFolder).ok());
    ASSERT_TRUE(server->files.SyncFolder("/").ok());
  }

  StartServers();
  JoinBoth(0);
  TrainBoth(0, 4);
  Leave(w0_);
  Leave(w1_);
  StopServers();
  RestartServers();
  JoinBoth(4);
  TrainBoth(4, 9);
  EXPECT_EQ(Masters(), uninterrupted);
}

TEST_P(ResumedRunTest, MoreEpochsMakeTheScheduleLonger) {
  rule_ = Rule::Sync(2, /*ordered_fold=*/true);
  durability_ = GetParam();
  schedule_ = {.kind = ScheduleKind::kPolynomial, .learning_rate = 0.5, .power = 1};
  planned_examples_ = 32;  // four steps of two workers
  StartServers();
  JoinBoth(0);
  TrainBoth(0, 4);
  // The masters without their averages, which change without a step of the optimizer.
  const auto masters = [this] { return Masters().substr(0, Masters().size() / 2); };
  const std::string finished = masters();
  Leave(w0_);
  Leave(w1_);
  StopServers();

  planned_examples_ = 64;
  RestartServers();
  JoinBoth(4);
  EXPECT_EQ(masters(), finished);
  TrainBoth(4, 6);
  const std::string resumed = masters();
  EXPECT_NE(resumed, finished) << "the learning rate of the new epochs is 0";
  Leave(w0_);
  Leave(w1_);
  if (durability_ == Durability::kLog) {
    // The log has the events since the start, and the same bits come of them.
    for (uint32_t s = 0; s < kServers; ++s) Kill(s);
    StartServers();
    EXPECT_EQ(masters(), resumed);
  }
}

// All processes are killed. The new worker processes join when the leases of the old ones have
// ended, and the first of them may not train alone.
TEST_P(ResumedRunTest, NewProcessesOfAKilledRunWaitForEachOther) {
  rule_ = Rule::Sync(2, /*ordered_fold=*/true);
  durability_ = GetParam();
  StartServers();
  JoinBoth(0);
  const bool has_log = durability_ == Durability::kLog;
  if (!has_log) AwaitCheckpoint(0);
  const uint64_t step = has_log ? 5 : Announce();
  TrainBoth(0, step);
  if (!has_log) AwaitCheckpoint(step);
  const std::string killed = Masters();
  for (uint32_t s = 0; s < kServers; ++s) Kill(s);

  lease_ = absl::Seconds(10);
  StartServers();
  const uint64_t generation = has_log ? 1 : 2;
  TickUntil([&] {
    return Status(0).generation() == generation && Status(1).generation() == generation &&
           !Status(0).awaits_rollback() && !Status(1).awaits_rollback();
  });
  for (Worker* worker : {&w0_, &w1_}) *worker = Worker{.number = worker->number};
  Pending<JoinReply> joins[] = {StartJoin(0, w0_), StartJoin(0, w1_)};
  const auto waits = [&](const Worker& worker) {
    Status(0);  // the lead has handled the Join
    Pending<JoinReply>& join = joins[worker.number];
    if (!join.ready()) return true;
    EXPECT_EQ(join.Get().status().code(), absl::StatusCode::kUnavailable);
    join = StartJoin(0, worker);
    return false;
  };
  TickUntil([&] { return waits(w0_) && waits(w1_); });
  Advance(lease_ + absl::Milliseconds(1));
  TickUntil([&] { return joins[0].ready() && joins[1].ready(); });
  for (Worker* worker : {&w0_, &w1_}) {
    const absl::StatusOr<JoinReply> reply = joins[worker->number].Get();
    ASSERT_TRUE(reply.ok()) << reply.status();
    worker->incarnation = reply->incarnation();
  }
  JoinAll(w0_);
  SendReads(w0_, step);
  Masters();  // the shards have applied the reads
  Advance(absl::Seconds(3));
  for (uint32_t s = 0; s < kServers; ++s) {
    Tick(s);
    EXPECT_GT(w0_.streams[s]->NextWaiting().wanted, 0u) << "server " << s;
  }
  JoinAll(w1_);
  SendReads(w1_, step);
  AwaitParameters(w0_, step);
  AwaitParameters(w1_, step);
  EXPECT_EQ(Masters(), killed);
}

// Each worker leaves the servers in another order.
TEST_P(ResumedRunTest, FinishedWorkersLeaveCheckpointsOfTheSameStep) {
  rule_ = Rule::Sync(2);
  durability_ = GetParam();
  StartServers();
  JoinBoth(0);
  TrainBoth(0, 4);
  LeaveServer(w0_, 0);
  LeaveServer(w1_, 1);
  LeaveServer(w1_, 0);
  LeaveServer(w0_, 1);
  StopServers();
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(StepsOf(s).back(), Step{4}) << s;
}

// Worker 0 has pushed step 4 and worker 1 has not. Each leaves the servers in another order.
TEST_P(ResumedRunTest, WorkersThatStopWithinAStepLeaveCheckpointsOfTheSameStep) {
  rule_ = Rule::Sync(2);
  durability_ = GetParam();
  StartServers();
  JoinBoth(0);
  TrainBoth(0, 4);
  SendPushes(w0_, 4);
  for (uint32_t s = 0; s < kServers; ++s) {
    for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
      EXPECT_EQ(w0_.streams[s]->NextVerdict().kind, kAccept);
    }
  }
  const std::string before = Masters();
  LeaveServer(w0_, 0);
  LeaveServer(w1_, 1);
  LeaveServer(w1_, 0);
  LeaveServer(w0_, 1);
  const std::string stopped = Masters();
  EXPECT_NE(stopped, before) << "the gradient of step 4 is applied";
  StopServers();
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(StepsOf(s).back(), Step{5}) << s;
  StartServers();
  const uint64_t generation = durability_ == Durability::kCheckpoint ? 2 : 1;
  TickUntil(
      [&] { return Status(0).generation() == generation && Status(1).generation() == generation; });
  EXPECT_EQ(Masters(), stopped);
}

INSTANTIATE_TEST_SUITE_P(Durabilities, ResumedRunTest,
                         testing::Values(Durability::kCheckpoint, Durability::kLog),
                         [](const auto& info) {
                           return info.param == Durability::kLog ? "Log" : "Checkpoint";
                         });

TEST_F(RollbackTest, InAsyncAServerContinuesAloneUnderTheNextGeneration) {
  rule_ = Rule::Async(1);
  StartServers();
  Begin();
  Train(3);
  TickLead();
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  EXPECT_EQ(Status(0).generation(), 1u);
  EXPECT_EQ(Status(1).generation(), 2u);
  EXPECT_FALSE(Status(1).awaits_rollback());
  const absl::StatusOr<JoinReply> reply = Join(1, w0_);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->generation(), 2u);
  EXPECT_EQ(reply->shards(0).frontier(), 0u);
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  EXPECT_EQ(Status(1).generation(), 3u);
}

// The newest checkpoints of both servers are older than the change.
TEST_F(RollbackTest, InAsyncNoRestartForgetsAChangeOfTheMode) {
  rule_ = Rule::Async(1);
  StartServers();
  Begin();
  SetModeRequest request;
  request.mutable_consistency()->set_mode(Consistency::Mode::ssp);
  request.mutable_consistency()->set_slack(3);
  ASSERT_TRUE(SetMode(request).ok());
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(NewestMode(s), "ssp");
  for (const std::vector<uint32_t>& killed : {std::vector<uint32_t>{1}, {0}, {0, 1}}) {
    for (const uint32_t s : killed) Kill(s);
    for (const uint32_t s : killed) {
      ASSERT_TRUE(StartServer(s).ok());
      EXPECT_EQ(NewestMode(s), "async") << "of the checkpoint";
    }
    TickUntil([&] { return NewestMode(0) == "ssp" && NewestMode(1) == "ssp"; });
  }
}

// The checkpoints of both servers are older than the change.
TEST_F(RollbackTest, ARollbackForgetsNoChangeOfTheMode) {
  rule_ = Rule::Sync(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  JoinAll(w1_);
  SetModeRequest request;
  request.mutable_consistency()->set_mode(Consistency::Mode::backup);
  request.mutable_consistency()->set_backup(1);
  ASSERT_TRUE(SetMode(request).ok());
  uint64_t generation = 1;
  for (const std::vector<uint32_t>& killed : {std::vector<uint32_t>{1}, {0}, {0, 1}}) {
    for (const uint32_t s : killed) Kill(s);
    for (const uint32_t s : killed) {
      ASSERT_TRUE(StartServer(s).ok());
      EXPECT_EQ(NewestMode(s), "sync") << "of the checkpoint";
    }
    AwaitGeneration(++generation);
    TickUntil([&] { return NewestMode(0) == "backup" && NewestMode(1) == "backup"; });
  }
}

// The workers were told that no deal begins for many steps, which they take again.
TEST_F(RollbackTest, AfterARollbackANewWorkerIsDealtExamplesSoon) {
  rule_.max_workers = 2;
  StartServers();
  Begin();
  Train(30);
  const auto heartbeat = [this](uint64_t epoch, uint64_t dealt_until) {
    HeartbeatRequest request;
    request.set_incarnation(w0_.incarnation);
    request.set_epoch(epoch);
    request.set_dealt_until(dealt_until);
    Pending<HeartbeatReply> reply(run_task_);
    servers_[0]->job->Call(request, reply.done());
    return reply.Get().value();
  };
  const uint64_t earlier_epoch = servers_[0]->epoch;
  const uint64_t told = heartbeat(earlier_epoch, 0).dealt_until();
  EXPECT_GT(told, 30u);
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  AwaitGeneration(2);
  heartbeat(earlier_epoch, told);  // before the worker joins again
  Resume(0);
  ScaleRequest scale;
  scale.set_workers(2);
  Pending<ScaleReply> scaled(run_task_);
  servers_[0]->job->Call(scale, scaled.done());
  ASSERT_TRUE(scaled.Get().ok());
  JoinAll(w1_);
  TickUntil([&] { return heartbeat(servers_[0]->epoch, 0).deals_size() > 0; });
  EXPECT_LE(heartbeat(servers_[0]->epoch, 0).deals(0).step(), 16u);
}

TEST_F(RollbackTest, ALeadThatIsKilledWhileAnotherServerWritesItsFirstCheckpointGoesOn) {
  StartServers();
  servers_[1]->is_disk_held = true;
  JoinAll(w0_);
  SendReads(w0_, 0, /*seed=*/true);
  AwaitParameters(w0_, 0);
  TickUntil([&] { return HasStep(0, 0); });
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  RunTicks(300);
  EXPECT_TRUE(servers_[0]->failure.ok()) << servers_[0]->failure;
  servers_[1]->is_disk_held = false;
  AwaitGeneration(2);
  Resume(0);
}

TEST_F(RollbackTest, ALeadWhoseClockWasSetBackChangesTheMode) {
  rule_ = Rule::Async(1);
  durability_ = Durability::kLog;
  StartServers();
  JoinAll(w0_);
  SetModeRequest request;
  request.mutable_consistency()->set_mode(Consistency::Mode::ssp);
  for (const uint32_t slack : {3, 4}) {
    Kill(0);
    ASSERT_TRUE(StartServer(0).ok());
    RunTicks(3);  // passes the rule on
    request.mutable_consistency()->set_slack(slack);
    const auto reply = SetMode(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
  }
}

// The checkpoint of the lead is older than the decisions.
TEST_F(RollbackTest, ALeadForgetsNoReductionAndNoDrain) {
  for (const Rule& rule : {Rule::Sync(2), Rule::Async(2)}) {
    rule_ = rule;
    for (uint32_t s = 0; s < kServers; ++s) RestartWithoutState(s);
    w0_ = Worker{.number = 0};
    w1_ = Worker{.number = 1};
    BeginBeforeTheOtherWorker();
    JoinAll(w1_);
    DrainRequest drain;
    drain.set_worker(0);
    Pending<DrainReply> drained(run_task_);
    servers_[0]->job->Call(drain, drained.done());
    ASSERT_TRUE(drained.Get().ok());
    ScaleRequest scale;
    scale.set_workers(1);
    Pending<ScaleReply> scaled(run_task_);
    servers_[0]->job->Call(scale, scaled.done());
    ASSERT_TRUE(scaled.Get().ok());
    Kill(0);
    ASSERT_TRUE(StartServer(0).ok());
    TickUntil([&] { return Status(0).generation() == 2 && Join(0, w0_).ok(); });
    EXPECT_EQ(Status(0).target_workers(), 1u) << rule;
    for (const Worker* worker : {&w0_, &w1_}) {
      HeartbeatRequest request;
      request.set_worker(worker->number);
      request.set_incarnation(worker->incarnation);
      Pending<HeartbeatReply> reply(run_task_);
      servers_[0]->job->Call(request, reply.done());
      EXPECT_TRUE(reply.Get()->retired()) << rule << ", worker " << worker->number;
    }
  }
}

TEST_F(RollbackTest, AReductionAndADrainThatCannotBeStoredAreRefused) {
  rule_ = Rule::Async(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  servers_[0]->files.SetFreeBytes(0);
  DrainRequest drain;
  Pending<DrainReply> drained(run_task_);
  drain.set_worker(0);
  servers_[0]->job->Call(drain, drained.done());
  EXPECT_TRUE(absl::IsResourceExhausted(drained.Get().status()));
  ScaleRequest scale;
  scale.set_workers(1);
  Pending<ScaleReply> scaled(run_task_);
  servers_[0]->job->Call(scale, scaled.done());
  EXPECT_TRUE(absl::IsResourceExhausted(scaled.Get().status()));
  EXPECT_EQ(Status(0).target_workers(), 2u);
  HeartbeatRequest request;
  request.set_incarnation(w0_.incarnation);
  Pending<HeartbeatReply> reply(run_task_);
  servers_[0]->job->Call(request, reply.done());
  EXPECT_FALSE(reply.Get()->retired());
}

// The checkpoint of the lead is older than the deal.
TEST_F(RollbackTest, InAsyncALeadForgetsNoDeal) {
  rule_ = Rule::Async(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  JoinAll(w1_);
  Leave(w1_);
  const auto deals_of = [this] {
    const auto reply = Join(0, w0_);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return std::vector<Deal>(reply->deals().begin(), reply->deals().end());
  };
  // A deal that cannot be stored is not announced.
  servers_[0]->files.SetFreeBytes(0);
  RunTicks(300);
  EXPECT_TRUE(deals_of().empty());
  servers_[0]->files.SetFreeBytes(1 << 20);
  TickUntil([&] { return !deals_of().empty(); });
  const std::vector<Deal> deals = deals_of();
  ASSERT_EQ(deals.size(), 1u);
  EXPECT_EQ(deals[0].members_size(), 1);
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  const std::vector<Deal> restored = deals_of();
  ASSERT_EQ(restored.size(), 1u);
  EXPECT_EQ(restored[0].SerializeAsString(), deals[0].SerializeAsString());
}

TEST_F(RollbackTest, InAsyncAModeThatCannotBeStoredIsRefused) {
  rule_ = Rule::Async(1);
  StartServers();
  Begin();
  servers_[0]->files.SetFreeBytes(0);
  SetModeRequest request;
  request.mutable_consistency()->set_mode(Consistency::Mode::ssp);
  EXPECT_TRUE(absl::IsResourceExhausted(SetMode(request).status()));
  TickUntil([&] { return Status(1).next_mode().empty(); });
  EXPECT_EQ(Status(0).next_mode(), "");
}

// The lead's generation is higher than that of server 1, which therefore cannot know the
// incarnation.
TEST_F(RollbackTest, InAsyncAServerAdoptsAProcessThatItsCheckpointDoesNotKnow) {
  rule_ = Rule::Async(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  JoinAll(w0_);  // before, the lead does not know whether the run goes on
  JoinAll(w1_);
  EXPECT_EQ(w1_.incarnation, Membership::kIncarnationsPerGeneration + 1);
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  EXPECT_EQ(Join(1, w1_).status().code(), absl::StatusCode::kNotFound);
  // The process joins the lead again, which announces it.
  const uint64_t incarnation = w1_.incarnation;
  ASSERT_TRUE(Join(0, w1_).ok());
  TickUntil([&] { return Join(1, w1_).ok(); });
  JoinAll(w1_);
  EXPECT_EQ(w1_.incarnation, incarnation);
  EXPECT_TRUE(Status(1).workers(1).live());
}

TEST_F(RollbackTest, InAsyncTheLeadAdoptsAProcessThatItsCheckpointDoesNotKnow) {
  rule_ = Rule::Async(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  for (int round = 0; round < 2; ++round) {
    JoinAll(w1_);
    const uint64_t incarnation = w1_.incarnation;
    Kill(0);
    ASSERT_TRUE(StartServer(0).ok());
    EXPECT_EQ(Status(0).workers_size(), 1) << "only worker 0 is known";
    JoinAll(w1_);
    EXPECT_EQ(w1_.incarnation, incarnation);
    EXPECT_TRUE(Status(0).workers(1).live());
    Leave(w1_);
  }
}

// The lead has stored the epoch with which it admitted server 1.
TEST_F(RollbackTest, InAsyncARestartedLeadAdmitsNoServerThatLostItsFolder) {
  rule_ = Rule::Async(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  RestartWithoutState(1);
  EXPECT_TRUE(Join(0, w0_).ok());  // new processes wait until an earlier one comes back
  ExpectLostState(Join(0, w1_).status(), 1);
  EXPECT_EQ(Status(1).run(), 0u);
}

TEST_F(RollbackTest, ALeadThatHasGoneBackAdmitsNoServerThatLostItsFolder) {
  rule_ = Rule::Sync(2);
  StartServers();
  BeginBeforeTheOtherWorker();
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  TickUntil([&] { return Status(0).generation() == 2 && Status(1).generation() == 2; });
  // A Join of worker 0 would make the lead announce it to server 1.
  const Worker unknown = {.number = 0, .incarnation = 5 * Membership::kIncarnationsPerGeneration};
  TickUntil([&] { return Join(0, unknown).status().code() == absl::StatusCode::kNotFound; });
  RestartWithoutState(1);
  EXPECT_TRUE(Join(0, w0_).ok());  // new processes wait until an earlier one comes back
  ExpectLostState(Join(0, w1_).status(), 1);
  EXPECT_EQ(Status(1).run(), 0u);
}

TEST_F(RollbackTest, WithALogARestartedLeadAdmitsNoServerThatLostItsFolder) {
  rule_ = Rule::Sync(2);
  durability_ = Durability::kLog;
  StartServers();
  JoinAll(w0_);
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  RestartWithoutState(1);
  EXPECT_TRUE(Join(0, w0_).ok());  // new processes wait until an earlier one comes back
  ExpectLostState(Join(0, w1_).status(), 1);
  EXPECT_EQ(Status(1).run(), 0u);
}

// The lead has recorded the run, but has not admitted server 1.
TEST_F(RollbackTest, ALeadThatIsKilledBeforeItAdmitsAServerAdmitsItLater) {
  rule_ = Rule::Sync(2);
  durability_ = Durability::kLog;
  StartServers();
  SetReachable(1, false);
  Pending<JoinReply> pending(run_task_);
  servers_[0]->job->Join(
      JoinRequestOf(partition_, 0, 0, 0), [] { return false; }, pending.done());
  while (Status(0).log_records() == 0) {
  }
  Kill(0);
  SetReachable(1, true);
  RestartWithoutState(1);
  ASSERT_TRUE(StartServer(0).ok());
  EXPECT_TRUE(Status(0).recovered());
  JoinAll(w1_);
}

TEST_F(RollbackTest, AnOperatorGetsACheckpointOfTheNextAnnouncedStep) {
  StartServers();
  Begin();
  RunTicks(100);  // both servers answer the lead once
  Train(3);
  Pending<SaveCheckpointReply> first = StartSave();
  TickUntil([&] { return AnnouncedStep().has_value(); });
  const uint64_t step = *AnnouncedStep();
  EXPECT_GT(step, 3u);
  Pending<SaveCheckpointReply> second = StartSave();
  Train(step);
  TickUntil([&] { return first.ready() && second.ready(); });
  ExpectSteps(first.Get(), step);
  ExpectSteps(second.Get(), step);
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(StepsOf(s).back(), Step{step}) << s;
  Train(step + 2);
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[step]);
}

TEST_F(RollbackTest, AnOperatorGetsACheckpointOfAFinishedJob) {
  StartServers();
  Begin();
  RunTicks(100);  // both servers answer the lead once
  Train(3);
  EXPECT_GT(Announce(), 3u) << "no worker reaches this step";
  Leave(w0_);
  ExpectSteps(Save(), 3);
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_EQ(StepsOf(s).back(), Step{3}) << s;
  ExpectSteps(Save(), 3);  // the checkpoint is there already
}

TEST_F(RollbackTest, InAsyncAndWithALogAnOperatorGetsACheckpointAtOnce) {
  for (const auto& [rule, durability] : {std::pair(Rule::Async(1), Durability::kCheckpoint),
                                         {Rule::Async(1), Durability::kLog},
                                         {Rule::Sync(1), Durability::kLog}}) {
    rule_ = rule;
    durability_ = durability;
    for (uint32_t s = 0; s < kServers; ++s) RestartWithoutState(s);
    w0_ = Worker{.number = 0};
    step_ = 0;
    JoinAll(w0_);
    SendReads(w0_, 0, /*seed=*/true);
    AwaitParameters(w0_, 0);
    Train(3);
    ExpectSteps(Save(), 3);
    for (const auto& server : servers_) {
      const Checkpoint saved = ReadCheckpoint(server->files, kFolder).value();
      EXPECT_EQ(saved.shards[0].state.frontier, Step{3}) << rule;
    }
  }
}

TEST_F(RollbackTest, ACheckpointThatCannotBeMadeNamesTheServerAndTheCause) {
  StartServers();
  EXPECT_EQ(Save().status(), absl::FailedPreconditionError(
                                 "there are no parameters to save: no worker has joined yet"));
  Begin();
  RunTicks(100);  // both servers answer the lead once
  EXPECT_TRUE(absl::IsInvalidArgument(StartSave(/*s=*/1).Get().status())) << "not the lead";
  EXPECT_TRUE(absl::IsInvalidArgument(StartSave(0, /*seconds=*/0).Get().status()));
  SetReachable(1, false);
  EXPECT_EQ(Save().status(), absl::UnavailableError("server 1 (in process): unreachable"));
  SetReachable(1, true);

  Pending<SaveCheckpointReply> late = StartSave(0, /*seconds=*/60);
  const uint64_t step = *AnnouncedStep();
  Advance(absl::Seconds(60));
  TickUntil([&] { return late.ready(); });
  EXPECT_EQ(late.Get().status(),
            absl::DeadlineExceededError(
                absl::StrCat("server 0: no checkpoint within 1m: the shards have not reached step ",
                             step, " (they are at 0)")));

  servers_[1]->files.SetFreeBytes(10);
  Pending<SaveCheckpointReply> full = StartSave();
  Train(step);
  TickUntil([&] { return full.ready(); });
  EXPECT_TRUE(absl::IsResourceExhausted(full.Get().status())) << full.Get().status();
  EXPECT_TRUE(absl::StrContains(std::string(full.Get().status().message()),
                                "server 1 (in process): /state/checkpoint-"))
      << full.Get().status();

  Kill(1);
  servers_[1]->files.SetFreeBytes(uint64_t{1} << 40);
  ASSERT_TRUE(StartServer(1).ok());
  EXPECT_EQ(StartSave().Get().status(),
            absl::UnavailableError("server 1 (in process): server 1 waits for server 0 to choose "
                                   "the checkpoint to continue from"));
}

TEST_F(RollbackTest, WithoutDurabilityThereIsNoCheckpointToMakeOrToRestore) {
  is_durable_ = false;
  StartServers();
  JoinAll(w0_);
  EXPECT_EQ(StartSave().Get().status(),
            absl::FailedPreconditionError("durability: the servers of this job keep no checkpoints "
                                          "(expected checkpoint or log, got none)"));
  EXPECT_EQ(Restore(0).status(),
            absl::FailedPreconditionError("durability: the servers of this job keep no checkpoints "
                                          "(expected checkpoint, got none)"));
}

TEST_F(RollbackTest, AnOperatorSendsARunningJobBack) {
  StartServers();
  Begin();
  const uint64_t first = TrainToCheckpoint();
  const uint64_t second = TrainToCheckpoint();
  Train(second + 2);
  const std::string lost = Masters();
  EXPECT_EQ(Restore(first + 1).status(),
            absl::InvalidArgumentError(
                absl::StrCat("step: not a step of which all servers have a checkpoint (expected ",
                             first, " or ", second, ", got ", first + 1, ")")));
  EXPECT_TRUE(absl::IsInvalidArgument(Restore(first, /*s=*/1).status())) << "not the lead";
  SetReachable(1, false);
  EXPECT_EQ(Restore(first).status(),
            absl::UnavailableError("server 1 (in process): does not answer server 0"));
  SetReachable(1, true);
  Train(second + 3);  // the refusals have changed nothing

  const auto reply = Restore(first);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->generation(), 2u);
  AwaitGeneration(2);
  EXPECT_EQ(Masters(), masters_[first]);
  for (uint32_t s = 0; s < kServers; ++s) {
    EXPECT_TRUE(HasStep(s, first)) << s;
    EXPECT_FALSE(HasStep(s, second)) << s;
  }
  Resume(first);
  EXPECT_EQ(w0_.generation, 2u);
  EXPECT_EQ(w0_.incarnation, 1u);
  Train(second + 2);
  EXPECT_EQ(Masters(), lost) << "the repeated steps have the same bits";
}

// No restart removes a kept checkpoint, and a running job can go back to it.
TEST_F(RollbackTest, TheCheckpointOfAnIntervalStaysAtAllServers) {
  retention_ = {.newest_count = 1, .every = 8};
  StartServers();
  Begin();
  std::vector<uint64_t> steps;
  for (int i = 0; i < 5; ++i) steps.push_back(TrainToCheckpoint());
  const std::vector<Step> kept = StepsOf(0);
  EXPECT_EQ(kept, StepsOf(1));
  EXPECT_LT(kept.size(), steps.size());
  const auto first = std::ranges::find_if(steps, [](uint64_t step) { return step >= 8; });
  ASSERT_EQ(kept.front(), Step{*first});
  EXPECT_EQ(kept.back(), Step{steps.back()});
  Kill(1);
  ASSERT_TRUE(StartServer(1).ok());
  AwaitGeneration(2);
  Resume(steps.back());
  TrainToCheckpoint();
  for (uint32_t s = 0; s < kServers; ++s) {
    EXPECT_TRUE(HasStep(s, *first)) << "server " << s;
  }
  ASSERT_TRUE(Restore(*first).ok());
  AwaitGeneration(3);
  EXPECT_EQ(Masters(), masters_[*first]);
}

// No restart undoes the return, or continues from a checkpoint of the abandoned generation.
TEST_F(RollbackTest, RestartsAfterAReturnContinueFromItsStep) {
  StartServers();
  Begin();
  const uint64_t first = TrainToCheckpoint();
  const uint64_t second = TrainToCheckpoint();
  Train(second + 1);
  ASSERT_TRUE(Restore(first).ok());
  uint64_t generation = 2;
  AwaitGeneration(generation);
  for (const std::vector<uint32_t>& killed : {std::vector<uint32_t>{1}, {0}, {0, 1}}) {
    Resume(first);
    Train(second + 1);
    for (const uint32_t s : killed) Kill(s);
    for (const uint32_t s : killed) ASSERT_TRUE(StartServer(s).ok());
    AwaitGeneration(++generation);
    EXPECT_EQ(Masters(), masters_[first]);
  }
}

// The lead has gone back, durably, when it is killed.
TEST_F(RollbackTest, ALeadThatIsKilledWithinAReturnCompletesIt) {
  StartServers();
  Begin();
  const uint64_t first = TrainToCheckpoint();
  const uint64_t second = TrainToCheckpoint();
  Train(second + 1);
  RestoreCheckpointRequest request;
  request.set_step(first);
  Pending<RestoreCheckpointReply> pending(run_task_);
  servers_[0]->job->Call(request, pending.done());
  for (int i = 0; i < kMostTicks && !servers_[0]->restart_wanted; ++i) RunTicks(1);
  ASSERT_TRUE(servers_[0]->restart_wanted);
  EXPECT_TRUE(pending.Get().ok());
  EXPECT_TRUE(HasStep(1, second)) << "server 1 has not gone back yet";
  Kill(0);
  ASSERT_TRUE(StartServer(0).ok());
  AwaitGeneration(3);  // the restarted lead asks for one more rollback, to the same step
  EXPECT_EQ(Masters(), masters_[first]);
  for (uint32_t s = 0; s < kServers; ++s) EXPECT_FALSE(HasStep(s, second)) << s;
  Resume(first);
  Train(second);
}

TEST_F(RollbackTest, AJobWhoseServersDoNotGoBackTogetherIsRestoredOffline) {
  rule_ = Rule::Async(1);
  StartServers();
  Begin();
  const absl::Status async = Restore(0).status();
  EXPECT_EQ(async, absl::FailedPreconditionError(
                       "mode: the servers of a running job go back together only in sync and "
                       "backup (got ssp or async); stop the job, then use thinwire checkpoint "
                       "restore DIR --step STEP and train --resume"));
  rule_ = Rule::Sync(1);
  durability_ = Durability::kLog;
  for (uint32_t s = 0; s < kServers; ++s) RestartWithoutState(s);
  const absl::Status log = Restore(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(log)) << log;
  EXPECT_TRUE(absl::StrContains(std::string(log.message()), "only with checkpoint (got log)"))
      << log;
}

// A lead of an older generation, which was suspended, and its checkpoints.
TEST_F(RollbackTest, Promise3AServerOfAnOlderGenerationIsRefusedAndItsCheckpointsAreNotChosen) {
  StartServers();
  Begin();
  const uint64_t step = TrainToCheckpoint();
  Train(step + 2);
  // The suspended lead keeps its process; another one takes over its folder.
  std::unique_ptr<Job> zombie;
  std::unique_ptr<TestStream> zombie_stream = std::move(w0_.streams[0]);
  const uint64_t zombie_epoch = servers_[0]->epoch;
  zombie = std::move(servers_[0]->job);
  ASSERT_TRUE(StartServer(0).ok());
  AwaitGeneration(2);
  const std::string rolled_back = Masters();
  EXPECT_EQ(rolled_back, masters_[step]);

  // The other server refuses the requests of the old lead.
  FollowRequest follow;
  follow.set_job("train");
  follow.set_run(run_);
  follow.set_generation(1);
  follow.set_checkpoint_step(step);
  Pending<FollowReply> followed(run_task_);
  servers_[1]->job->Call(follow, followed.done());
  EXPECT_EQ(followed.Get().status().message(),
            "generation: an older one (expected at least 2, got 1)");
  RollbackRequest order;
  order.set_job("train");
  order.set_run(run_);
  order.set_generation(2);
  order.set_step(step);
  Pending<RollbackReply> ordered(run_task_);
  servers_[1]->job->Call(order, ordered.done());
  EXPECT_EQ(ordered.Get().status().code(), absl::StatusCode::kFailedPrecondition);

  // The old lead refuses pushes of the new generation.
  Resume(step);
  WorkerFrame frame;
  frame.worker = {0};
  frame.incarnation = {1};
  frame.generation = {2};
  frame.epoch = Epoch{zombie_epoch};
  const ShardId shard = partition_.ShardsOf(ServerId{0}).front();
  PushEntry& push = frame.pushes.emplace_back();
  push.shard = shard;
  push.step = {step + 2};
  push.examples = 1;
  push.read_codec = kFp32;
  push.payload = Payload(std::vector<float>(partition_.value_count(shard), 1));
  zombie_stream->Send(frame);
  EXPECT_EQ(zombie_stream->NextVerdict().kind, kStale);

  // A late checkpoint of the old generation is not offered.
  Checkpoint late = ReadCheckpoint(servers_[0]->files, kFolder).value();
  late.run.generation = Generation{1};
  late.step = Step{step + 2};
  ASSERT_TRUE(
      WriteCheckpoint(servers_[0]->files, kFolder, late, {.retention = {.newest_count = 9}}).ok());
  EXPECT_EQ(StepsOf(0).back(), Step{step});
  Train(step + 2);
  zombie_stream.reset();
  zombie.reset();
}

// A crash at every file operation of a rollback of two servers leaves states from which the next
// plan leads both to the same step.
TEST(RollbackFilesTest, Promise5ACrashAtEveryFileOperationOfARollbackLeavesAPlan) {
  int crash_count = 0;
  const auto checkpoint_of = [](uint64_t step) {
    Checkpoint checkpoint;
    checkpoint.run = {.run = RunId{7}, .generation = Generation{1}, .join = JoinRequest()};
    checkpoint.step = Step{step};
    SavedShard& saved = checkpoint.shards.emplace_back();
    saved.state.frontier = Step{step};
    saved.state.store.version = Version{step};
    const std::vector<float> masters(16, static_cast<float>(step));
    saved.state.store.masters = CopyArray(std::as_bytes(std::span(masters)));
    return checkpoint;
  };
  const auto read = [](FaultyFiles& files) -> std::optional<ServerCheckpoints> {
    const absl::StatusOr<Checkpoint> newest = ReadCheckpoint(files, kFolder);
    EXPECT_TRUE(newest.ok()) << newest.status();
    if (!newest.ok()) return std::nullopt;
    ServerCheckpoints server = {.run = newest->run.run,
                                .generation = newest->run.generation,
                                .awaits_rollback = true,
                                .steps = {}};
    const auto aligned = ListAlignedCheckpoints(files, kFolder).value();
    for (const AlignedCheckpoint& a : aligned) server.steps.push_back(a.step);
    return server;
  };
  for (uint32_t crashing = 0; crashing < 2; ++crashing) {
    bool crashed = true;
    for (uint64_t operation = 1; crashed; ++operation) {
      FaultyFiles files[2] = {FaultyFiles(2 * operation), FaultyFiles(2 * operation + 1)};
      for (uint32_t s = 0; s < 2; ++s) {
        ASSERT_TRUE(files[s].MakeFolder(kFolder).ok());
        ASSERT_TRUE(files[s].SyncFolder("/").ok());
        for (uint64_t step : {0, 8, 16}) {
          if (s == 1 && step == 16) continue;
          ASSERT_TRUE(WriteCheckpoint(files[s], kFolder, checkpoint_of(step),
                                      {.retention = {.newest_count = 3}})
                          .ok());
        }
      }
      files[crashing].CrashAt(operation);
      for (uint32_t s = 0; s < 2; ++s) {
        (void)ContinueFrom(files[s], kFolder, Step{8}, Generation{2});
        if (s == crashing && files[s].crashed()) break;
      }
      crashed = files[crashing].crashed();
      crash_count += crashed ? 1 : 0;
      for (FaultyFiles& disk : files) disk.Restart();
      // The servers are started again and follow the plan.
      int order_count = 0;
      for (;; ++order_count) {
        ASSERT_LT(order_count, 4);
        std::vector<std::optional<ServerCheckpoints>> servers = {read(files[0]), read(files[1])};
        ASSERT_TRUE(servers[0].has_value() && servers[1].has_value());
        // A server that has gone back no longer waits.
        if (order_count > 0 && servers[0]->generation == servers[1]->generation) break;
        const auto plan = PlanRollback(servers);
        ASSERT_TRUE(plan.ok()) << plan.status();
        ASSERT_TRUE(plan->has_value());
        EXPECT_EQ((*plan)->step, Step{8}) << "operation " << operation;
        for (const ServerId server : (*plan)->servers) {
          const absl::Status status =
              ContinueFrom(files[server.value], kFolder, (*plan)->step, (*plan)->generation);
          ASSERT_TRUE(status.ok()) << status << " after operation " << operation;
        }
      }
      for (FaultyFiles& disk : files) {
        const Checkpoint newest = ReadCheckpoint(disk, kFolder).value();
        EXPECT_EQ(newest.step, Step{8});
        EXPECT_GE(newest.run.generation, Generation{2});
        EXPECT_EQ(newest.shards[0].state.store.masters.ToVector(),
                  checkpoint_of(8).shards[0].state.store.masters.ToVector());
        EXPECT_EQ(ListAlignedCheckpoints(disk, kFolder)->back().step, Step{8});
      }
    }
  }
  EXPECT_GT(crash_count, 20);
}

}  // namespace
}  // namespace thinwire
