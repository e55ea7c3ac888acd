// Tests durability: checkpoint with two servers: checkpoints at the same step, and rollbacks after
// servers were lost.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/memory/array_bytes.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/durable/checkpoint.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job.h"
#include "server/job/testing/test_stream.h"
#include "server/job/testing/two_servers.h"
#include "server/protocols/checkpoints/rollback_plan.h"

namespace thinwire {
namespace {

constexpr auto kStale = static_cast<uint32_t>(Verdict::kStale);

class RollbackTest : public TwoServersTest {};

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

// Servers that keep the newest checkpoint in memory, as with push: adaptive.
class ReturnInMemoryTest : public RollbackTest {
 protected:
  ReturnInMemoryTest() { keeps_snapshots_ = true; }

  // Trains beyond a checkpoint and returns to it twice, without the disks. Returns its step.
  uint64_t ReturnTwice() {
    StartServers();
    Begin();
    const uint64_t step = TrainToCheckpoint();
    for (const auto& server : servers_) server->is_disk_held = true;
    for (uint64_t generation = 2; generation <= 3; ++generation) {
      Train(step + 3);
      const std::string lost = Masters();
      EXPECT_TRUE(Restore(step).ok());
      AwaitGeneration(generation);
      EXPECT_EQ(Masters(), masters_[step]);
      Resume(step);
      EXPECT_EQ(w0_.generation, generation);
      Train(step + 3);
      EXPECT_EQ(Masters(), lost) << "the repeated steps have the same bits";
    }
    for (const auto& server : servers_) server->is_disk_held = false;
    return step;
  }
  void KillAfterReturns(uint32_t killed) {
    const uint64_t step = ReturnTwice();
    Kill(killed);
    ASSERT_TRUE(StartServer(killed).ok());
    AwaitGeneration(4);
    EXPECT_EQ(Masters(), masters_[step]);
    Resume(step);
    Train(step + 3);
  }
};

TEST_F(ReturnInMemoryTest, ServersReturnWithoutFiles) {
  const uint64_t step = ReturnTwice();
  // A later checkpoint replaces the snapshot; an earlier one is on disk only.
  const uint64_t later = TrainToCheckpoint();
  Train(later + 2);
  ASSERT_TRUE(Restore(later).ok());
  AwaitGeneration(4);
  EXPECT_EQ(Masters(), masters_[later]);
  ASSERT_TRUE(Restore(step).ok());
  AwaitGeneration(5);
  EXPECT_EQ(Masters(), masters_[step]);
}

TEST_F(ReturnInMemoryTest, AServerThatIsKilledAfterwardsTakesAllBackToTheCheckpoint) {
  KillAfterReturns(1);
}

TEST_F(ReturnInMemoryTest, ALeadThatIsKilledAfterwardsKnowsTheGeneration) { KillAfterReturns(0); }

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
  static constexpr char kFolder[] = "/state";
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
        const auto plan = PlanRollback(servers, /*settled=*/false);
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
