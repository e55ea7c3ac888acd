#include "server/job/testing/two_servers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "server/durable/checkpoint.h"
#include "server/durable/state_folder.h"
#include "server/job/testing/direct_peers.h"
#include "server/protocols/checkpoints/stored_state.h"

namespace thinwire {

TwoServersTest::TwoServersTest() : servers_(kServers) {
  for (auto& server : servers_) {
    server = std::make_unique<Server>();
    EXPECT_TRUE(server->files.MakeFolder(kFolder).ok());
    EXPECT_TRUE(server->files.SyncFolder("/").ok());
  }
}

TwoServersTest::~TwoServersTest() {
  for (Worker* worker : {&w0_, &w1_}) worker->streams.clear();
  for (uint32_t s = 0; s < kServers; ++s) Remove(s);
}

absl::Status TwoServersTest::StartServer(uint32_t s, bool in_place) {
  Server& server = *servers_[s];
  ++starts_;
  // The clock of the machine is set back before every start.
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(1000) - absl::Seconds(starts_);
  const Generation returned =
      server.snapshot == nullptr ? Generation() : server.snapshot->run.generation;
  const auto epoch = NextEpoch(server.files, kFolder, now, returned);
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
                     .snapshot = keeps_snapshots_ ? &server.snapshot : nullptr,
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

void TwoServersTest::StartServers() {
  for (uint32_t s = 0; s < kServers; ++s) ASSERT_TRUE(StartServer(s).ok());
}

void TwoServersTest::Remove(uint32_t s) {
  for (Worker* worker : {&w0_, &w1_}) {
    if (!worker->streams.empty()) worker->streams[s].reset();
  }
  servers_[s]->job.reset();
}

void TwoServersTest::Kill(uint32_t s) {
  RunDueTasks();
  servers_[s]->files.Crash();
  Remove(s);
  servers_[s]->snapshot.reset();
  servers_[s]->files.Restart();
}

void TwoServersTest::RestartWithoutState(uint32_t s) {
  Kill(s);
  servers_[s] = std::make_unique<Server>();
  ASSERT_TRUE(servers_[s]->files.MakeFolder(kFolder).ok());
  ASSERT_TRUE(servers_[s]->files.SyncFolder("/").ok());
  ASSERT_TRUE(StartServer(s).ok());
}

void TwoServersTest::SetReachable(uint32_t s, bool reachable) {
  if (reachable) {
    cut_.erase(s);
  } else {
    cut_.insert(s);
  }
}

StatusReply TwoServersTest::Status(uint32_t s) {
  Pending<StatusReply> pending(run_task_);
  servers_[s]->job->Call(StatusRequest(), pending.done());
  return pending.Get().value();
}

std::string TwoServersTest::NewestMode(uint32_t s) {
  const StatusReply status = Status(s);
  return status.next_mode().empty() ? status.mode() : status.next_mode();
}

absl::StatusOr<SetModeReply> TwoServersTest::SetMode(const SetModeRequest& request) {
  Pending<SetModeReply> change(run_task_);
  servers_[0]->job->Call(request, change.done());
  return change.Get();
}

VirtualTime* TwoServersTest::DueTasks() {
  if (time_.next() <= time_.elapsed()) return &time_;
  for (const auto& server : servers_) {
    if (!server->is_disk_held && !server->disk_time.empty()) return &server->disk_time;
  }
  return nullptr;
}

void TwoServersTest::RunTask() {
  VirtualTime* const tasks = DueTasks();
  CHECK(tasks != nullptr) << "nothing is left that could end the wait";
  tasks->RunNext();
}

void TwoServersTest::RunDueTasks() {
  while (DueTasks() != nullptr) RunTask();
}

void TwoServersTest::Advance(absl::Duration duration) {
  RunDueTasks();
  bool passed = false;
  time_.After(duration, [&passed] { passed = true; });
  while (!passed) time_.RunNext();
  RunDueTasks();
}

void TwoServersTest::Stop(uint32_t s) {
  bool stopped = false;
  servers_[s]->job->Stop([&stopped] { stopped = true; });
  while (!stopped) RunTask();
}

void TwoServersTest::Tick(uint32_t s) {
  bool done = false;
  servers_[s]->job->Tick([&done] { done = true; });
  while (!done) RunTask();
}

void TwoServersTest::TickUntil(const std::function<bool()>& done) {
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

void TwoServersTest::AwaitGeneration(uint64_t generation) {
  TickUntil([&] {
    for (uint32_t s = 0; s < kServers; ++s) {
      const StatusReply status = Status(s);
      if (status.generation() != generation || status.awaits_rollback()) return false;
    }
    return Join(0, w0_).ok();
  });
}

void TwoServersTest::RunTicks(int count) {
  for (int i = 0; i < count; ++i) {
    TickLead();
    Advance(absl::Milliseconds(10));
  }
}

uint64_t TwoServersTest::Announce() {
  const std::optional<uint64_t> before = AnnouncedStep();
  TickLead();
  Advance(2 * kInterval);
  TickUntil([&] { return AnnouncedStep() != before; });
  // Another round of calls ends after the announcement has arrived.
  RunTicks(100);
  return *AnnouncedStep();
}

std::optional<uint64_t> TwoServersTest::AnnouncedStep() {
  Pending<HeartbeatReply> pending(run_task_);
  servers_[0]->job->Call(HeartbeatRequest(), pending.done());
  const HeartbeatReply reply = pending.Get().value();
  return reply.has_checkpoint_step() ? std::optional(reply.checkpoint_step()) : std::nullopt;
}

std::vector<Step> TwoServersTest::StepsOf(uint32_t s) {
  std::vector<Step> steps;
  const auto aligned = ListAlignedCheckpoints(servers_[s]->files, kFolder).value();
  for (const AlignedCheckpoint& checkpoint : aligned) steps.push_back(checkpoint.step);
  return steps;
}

bool TwoServersTest::HasStep(uint32_t s, uint64_t step) {
  const std::vector<Step> steps = StepsOf(s);
  return std::ranges::count(steps, Step{step}) > 0;
}

void TwoServersTest::AwaitCheckpoint(uint64_t step) {
  for (const auto& server : servers_) ++server->awaited_count;
  TickUntil([&] {
    for (uint32_t s = 0; s < kServers; ++s) {
      if (!HasStep(s, step) || Status(s).checkpoints() < servers_[s]->awaited_count) return false;
    }
    return true;
  });
}

Pending<SaveCheckpointReply> TwoServersTest::StartSave(uint32_t s, double seconds) {
  SaveCheckpointRequest request;
  request.set_seconds(seconds);
  Pending<SaveCheckpointReply> pending(run_task_);
  servers_[s]->job->Call(request, pending.done());
  return pending;
}

absl::StatusOr<SaveCheckpointReply> TwoServersTest::Save() {
  Pending<SaveCheckpointReply> pending = StartSave();
  TickUntil([&] { return pending.ready(); });
  return pending.Get();
}

absl::StatusOr<RestoreCheckpointReply> TwoServersTest::Restore(uint64_t step, uint32_t s) {
  RestoreCheckpointRequest request;
  request.set_step(step);
  Pending<RestoreCheckpointReply> pending(run_task_);
  servers_[s]->job->Call(request, pending.done());
  TickUntil([&] { return pending.ready(); });
  return pending.Get();
}

void TwoServersTest::ReportTest(uint64_t step, double accuracy) {
  HeartbeatRequest request;
  request.set_worker(w0_.number);
  request.set_incarnation(w0_.incarnation);
  request.set_epoch(servers_[0]->epoch);
  *request.mutable_test() = MessageOf(TestResult{.step = Step{step}, .value = accuracy});
  Pending<HeartbeatReply> pending(run_task_);
  servers_[0]->job->Call(request, pending.done());
  ASSERT_TRUE(pending.Get().ok());
  RunTicks(100);  // the other server hears of the step
}

uint64_t TwoServersTest::TrainToTested(double accuracy) {
  const std::optional<uint64_t> before = AnnouncedStep();
  ReportTest(step_, accuracy);
  EXPECT_NE(AnnouncedStep(), before);
  const uint64_t step = *AnnouncedStep();
  Train(step);
  TickUntil([&] { return HasStep(0, step) && HasStep(1, step); });
  return step;
}

std::map<uint64_t, double> TwoServersTest::TestedOf(uint32_t s) {
  std::map<uint64_t, double> accuracies;
  const auto all = ListManifests(servers_[s]->files, kFolder).value();
  for (const TestedCheckpoint& tested : TestedCheckpoints(all)) {
    accuracies[tested.step->value] = tested.test.value;
  }
  return accuracies;
}

void TwoServersTest::ExpectSteps(const absl::StatusOr<SaveCheckpointReply>& reply, uint64_t step) {
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->least_step(), step);
  EXPECT_EQ(reply->largest_step(), step);
}

void TwoServersTest::ExpectLostState(const absl::Status& status, uint32_t s) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string expected = absl::StrCat("server ", s, " lost its state: ");
  EXPECT_TRUE(absl::StrContains(std::string(status.message()), expected)) << status;
}

absl::StatusOr<JoinReply> TwoServersTest::Join(uint32_t s, const Worker& worker) {
  return StartJoin(s, worker).Get();
}

Pending<JoinReply> TwoServersTest::StartJoin(uint32_t s, const Worker& worker) {
  const uint64_t run = worker.incarnation == 0 ? 0 : run_;
  JoinRequest request = JoinRequestOf(partition_, worker.number, worker.incarnation, run);
  request.set_planned_examples(planned_examples_);
  request.set_had_begun(worker.had_begun);
  Pending<JoinReply> pending(run_task_);
  servers_[s]->job->Join(
      request, [] { return false; }, pending.done());
  return pending;
}

void TwoServersTest::JoinAll(Worker& worker) {
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

void TwoServersTest::LeaveServer(const Worker& worker, uint32_t s) {
  LeaveRequest request;
  request.set_worker(worker.number);
  request.set_incarnation(worker.incarnation);
  request.set_run(run_);
  Pending<LeaveReply> pending(run_task_);
  servers_[s]->job->Call(request, pending.done());
  ASSERT_TRUE(pending.Get().ok());
}

void TwoServersTest::Leave(Worker& worker) {
  for (uint32_t s = 0; s < kServers; ++s) LeaveServer(worker, s);
  worker = Worker{.number = worker.number};
}

WorkerFrame TwoServersTest::FrameOf(const Worker& worker, uint32_t s) const {
  WorkerFrame frame;
  frame.worker = {worker.number};
  frame.incarnation = {worker.incarnation};
  frame.generation = {worker.generation};
  frame.epoch = Epoch{servers_[s]->epoch};
  return frame;
}

void TwoServersTest::SendReads(Worker& worker, uint64_t step, bool seed) {
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

void TwoServersTest::AwaitParameters(Worker& worker, uint64_t step) {
  for (uint32_t s = 0; s < kServers; ++s) {
    for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
      EXPECT_EQ(worker.streams[s]->NextParameters().step, Step{step});
    }
  }
}

void TwoServersTest::SendPushes(Worker& worker, uint64_t step) {
  for (uint32_t s = 0; s < kServers; ++s) SendPushesTo(worker, s, step);
}

void TwoServersTest::SendPushesTo(Worker& worker, uint32_t s, uint64_t step) {
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

void TwoServersTest::AwaitAccepted(Worker& worker, uint64_t step) {
  for (uint32_t s = 0; s < kServers; ++s) {
    for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
      EXPECT_EQ(worker.streams[s]->NextVerdict().kind, kAccept);
      EXPECT_EQ(worker.streams[s]->NextParameters().step, Step{step + 1});
    }
  }
}

void TwoServersTest::Begin() {
  JoinAll(w0_);
  SendReads(w0_, 0, /*seed=*/true);
  AwaitParameters(w0_, 0);
  AwaitCheckpoint(0);
  masters_[0] = Masters();
}

void TwoServersTest::BeginBeforeTheOtherWorker() {
  JoinAll(w0_);
  SendReads(w0_, 0, /*seed=*/true);
  AwaitCheckpoint(0);
}

void TwoServersTest::Train(uint64_t until) {
  for (; step_ < until; ++step_) {
    SendPushes(w0_, step_);
    AwaitAccepted(w0_, step_);
    masters_[step_ + 1] = Masters();
  }
}

void TwoServersTest::Resume(uint64_t step) {
  JoinAll(w0_);
  SendReads(w0_, step);
  AwaitParameters(w0_, step);
  step_ = step;
}

uint64_t TwoServersTest::TrainToCheckpoint() {
  const uint64_t step = Announce();
  Train(step);
  AwaitCheckpoint(step);
  return step;
}

std::string TwoServersTest::Masters() {
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

}  // namespace thinwire
