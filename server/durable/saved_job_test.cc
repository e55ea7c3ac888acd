#include "server/durable/saved_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/time/thread_executor.h"
#include "server/core/testing/fakes.h"
#include "server/durable/checkpoint.h"
#include "server/durable/event_log.h"
#include "server/durable/lead_file.h"
#include "server/durable/job_replacement.h"
#include "server/durable/log_record.h"
#include "server/durable/reshard.h"
#include "server/durable/testing/faulty_files.h"
#include "server/durable/testing/random_server.h"
#include "server/durable/testing/training_job.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kDir[] = "state";

RandomShard MomentumSetting() {
  RandomShard setting;
  setting.kind = OptimizerKind::kMomentum;
  setting.optimizer = MakeOptimizer({.kind = setting.kind}).value();
  setting.schedule = std::make_shared<const Schedule>(ConstantRate());
  return setting;
}

std::string Folder(uint32_t server) { return absl::StrCat(kDir, "/server-", server); }

// Writes a checkpoint of each of SERVERS to the state directory.
void Write(Files& files, const std::vector<Checkpoint>& servers) {
  ASSERT_TRUE(files.MakeFolder(kDir).ok());
  ASSERT_TRUE(files.SyncFolder("").ok());
  for (const Checkpoint& server : servers) {
    ASSERT_TRUE(files.MakeFolder(Folder(server.server.value)).ok());
    ASSERT_TRUE(files.SyncFolder(kDir).ok());
    const absl::Status status = WriteCheckpoint(files, Folder(server.server.value), server);
    ASSERT_TRUE(status.ok()) << status;
  }
}

std::string ReadError(Files& files, absl::StatusCode code) {
  const auto job = ReadSavedJob(files, kDir);
  EXPECT_EQ(job.status().code(), code) << job.status();
  return std::string(job.status().message());
}

std::vector<Checkpoint> ReadServers(Files& files) {
  absl::StatusOr<SavedJob> job = ReadSavedJob(files, kDir);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? std::move(job->servers) : std::vector<Checkpoint>();
}

class SavedJobTest : public testing::Test {
 protected:
  FaultyFiles files_;
  Threads threads_;
  TrainingJob job_{MomentumSetting(), 2, 100};
};

TEST_F(SavedJobTest, TheNewestCheckpointsOfOneStepAreRead) {
  job_.Train(4);
  const std::vector<Checkpoint> common = job_.Save();
  Write(files_, common);
  job_.Train(2);
  // Server 1 ended before it saved step 6.
  Write(files_, {job_.Save()[0]});
  const auto read = ReadSavedJob(files_, kDir);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->servers, common);
  EXPECT_EQ(read->least_step, Step{4});
  EXPECT_EQ(read->largest_step, Step{4});
}

TEST_F(SavedJobTest, CheckpointsOfAnAbandonedGenerationAreNotRead) {
  job_.Train(4);
  std::vector<Checkpoint> common = job_.Save();
  Write(files_, common);
  job_.Train(2);
  const std::vector<Checkpoint> abandoned = job_.Save();
  // Server 1 has not heard of the rollback to step 4 that server 0 performed before it saved step
  // 6.
  Write(files_, {abandoned[1]});
  Checkpoint newer = abandoned[0];
  newer.run.generation = Generation{2};
  Write(files_, {newer});
  const auto read = ReadSavedJob(files_, kDir);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->servers, common);
}

TEST_F(SavedJobTest, InAsyncTheNewestCheckpointOfEachServerIsRead) {
  const auto make_async = [](std::vector<Checkpoint> servers) {
    for (Checkpoint& server : servers) {
      auto& consistency = *server.run.join.mutable_config()->mutable_consistency();
      consistency.set_mode(Consistency::Mode::async);
    }
    return servers;
  };
  job_.Train(4);
  Write(files_, make_async(job_.Save()));
  job_.Train(2);
  Write(files_, {make_async(job_.Save())[1]});
  const auto read = ReadSavedJob(files_, kDir);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->least_step, Step{4});
  EXPECT_EQ(read->largest_step, Step{6});
}

TEST_F(SavedJobTest, AtTheEndOfARunTheFrontiersMayDiffer) {
  job_.Train(4);
  std::vector<Checkpoint> servers = job_.Save();
  for (SavedShard& saved : servers[1].shards) saved.state.frontier = Step{3};
  Write(files_, servers);
  EXPECT_TRUE(ReadSavedJob(files_, kDir).ok());
  // A worker that has not left may still push.
  servers[0].shards[0].state.workers[0].left = false;
  Write(files_, servers);
  Write(files_, servers);  // removes the checkpoints of the first call
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kFailedPrecondition),
            "state: the servers have no newest checkpoint of the same step (server 0 has steps 4, "
            "4; server 1 has steps 3, 3); resume the run with servers: 2 and stop it first");
}

TEST_F(SavedJobTest, AMissingOrDamagedOrUsedFolderIsNamed) {
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kNotFound), "state/server-0: no checkpoint");
  job_.Train(1);
  const std::vector<Checkpoint> servers = job_.Save();
  Write(files_, {servers[0]});
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kDataLoss),
            "state/server-1: missing (expected the folder of server 1)");
  ASSERT_TRUE(files_.MakeFolder(Folder(1)).ok());
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kDataLoss),
            "state/server-1: no checkpoint (expected one per server)");
  Checkpoint other = servers[1];
  other.run.run = RunId{5};
  Write(files_, {other});
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kDataLoss),
            "state/server-1: a checkpoint of another run");
  Write(files_, {servers[1]});
  {
    const auto lock = files_.Lock(Folder(1) + "/LOCK");
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(ReadError(files_, absl::StatusCode::kUnavailable),
              "state/server-1: a process of server 1 uses this folder");
  }
  EXPECT_TRUE(ReadSavedJob(files_, kDir).ok());
  const std::string manifest =
      absl::StrCat(Folder(1), "/", NewestCheckpoint(files_, Folder(1)).value(), "/manifest.json");
  files_.SetBytes(manifest, std::vector<std::byte>(7));
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kDataLoss), manifest + ": wrong checksum");
}

TEST_F(SavedJobTest, EventsInTheLogAfterTheCheckpointAreNotDropped) {
  job_.Train(2);
  std::vector<Checkpoint> servers = job_.Save();
  for (Checkpoint& server : servers) {
    server.run.join.mutable_config()->mutable_recovery()->set_durability(Recovery::Durability::log);
  }
  Write(files_, servers);
  auto log =
      EventLog::Open(files_, {.folder = Folder(1)}, threads_.Make(), 1, [](const absl::Status&) {
      }).value();
  const WorkerId worker{1};
  log->Append(EncodeRecord(MemberRecord{.worker = worker, .assigned = Incarnation{6}}),
              [](LogSequence) {});
  log->Flush();
  {
    const auto read = ReadSavedJob(files_, kDir);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->servers[1].members[1].assigned, Incarnation{6});
  }
  const FakeWorker fake{worker, Incarnation{6}};
  log->Append(EncodeRecord(ShardRecord{servers[1].shards[0].shard, fake.Join()}),
              [](LogSequence) {});
  log->Flush();
  EXPECT_EQ(ReadError(files_, absl::StatusCode::kFailedPrecondition),
            "state/server-1: the event log has events after the newest checkpoint; resume the run "
            "with servers: 2 and stop it first");
}

TEST_F(SavedJobTest, AReplacementMovesTheOldFoldersAside) {
  job_.Train(3);
  const std::vector<Checkpoint> old = job_.Save();
  Write(files_, old);
  ASSERT_TRUE(files_.MakeFolder("state/worker-0").ok());
  const std::vector<Checkpoint> made = Reshard(old, 1, 1000).value();
  LeadState decisions;
  decisions.set_run(old[0].run.run.value);
  decisions.mutable_rule()->set_change(7);
  ASSERT_TRUE(WriteLeadState(files_, Folder(0), decisions).ok());
  const auto first = ReplaceSavedJob(files_, kDir, made);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->number, 1u);
  EXPECT_TRUE(first->moved);
  EXPECT_THAT(files_.List(kDir).value(), ElementsAre("server-0", "server-0.before-1",
                                                     "server-1.before-1", "worker-0.before-1"));
  EXPECT_EQ(ReadServers(files_), made);
  const auto kept = ReadLeadState(files_, Folder(0), old[0].run.run);
  ASSERT_TRUE(kept.ok() && kept->has_value()) << kept.status();
  EXPECT_EQ((*kept)->SerializeAsString(), decisions.SerializeAsString());
  EXPECT_EQ(ReadCheckpoint(files_, "state/server-1.before-1").value(), old[1]);
  const auto second = ReplaceSavedJob(files_, kDir, Reshard(made, 2, 100).value());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->number, 2u);
  EXPECT_THAT(files_.List(kDir).value(),
              ElementsAre("server-0", "server-0.before-1", "server-0.before-2", "server-1",
                          "server-1.before-1", "worker-0.before-1"));
}

TEST_F(SavedJobTest, ARestoredStepIsTheStateOfTheJob) {
  job_.Train(4);
  std::vector<Checkpoint> old = job_.Save();
  Write(files_, old);
  job_.Train(2);
  std::vector<Checkpoint> newest = job_.Save();
  newest[1].run.generation = Generation{5};  // a rollback that only one server performed
  Write(files_, newest);
  ASSERT_TRUE(files_.MakeFolder("state/worker-0").ok());
  const auto refused = RestoreSavedJob(files_, kDir, Step{5});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.status().message(),
            "state: not all servers have a checkpoint of step 5 (server 0 has steps 6, 4; server 1 "
            "has steps 6, 4)");
  const auto restored = RestoreSavedJob(files_, kDir, Step{4});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->least_step, Step{4});
  EXPECT_EQ(restored->largest_step, Step{4});
  // The shards are the same, so the residuals of the workers stay.
  EXPECT_THAT(files_.List(kDir).value(), ElementsAre("server-0", "server-0.before-1", "server-1",
                                                     "server-1.before-1", "worker-0"));
  const std::vector<Checkpoint> servers = ReadServers(files_);
  old[0].run.generation = Generation{5};
  EXPECT_EQ(servers, Reshard(old, 2, 100).value());
  EXPECT_EQ(servers[0].run.generation, Generation{6});
  EXPECT_EQ(ReadCheckpoint(files_, "state/server-1.before-1").value(), newest[1]);
}

TEST_F(SavedJobTest, WithALogEachServerGoesBackToItsOwnStepAndDropsLaterEvents) {
  const auto with_log = [](std::vector<Checkpoint> servers) {
    for (Checkpoint& server : servers) {
      auto& recovery = *server.run.join.mutable_config()->mutable_recovery();
      recovery.set_durability(Recovery::Durability::log);
    }
    return servers;
  };
  job_.Train(4);
  Write(files_, with_log(job_.Save()));
  job_.Train(1);
  Write(files_, {with_log(job_.Save())[1]});
  job_.Train(3);
  const std::vector<Checkpoint> newest = with_log(job_.Save());
  Write(files_, {newest[0]});
  auto log =
      EventLog::Open(files_, {.folder = Folder(0)}, threads_.Make(), 1, [](const absl::Status&) {
      }).value();
  const FakeWorker fake{WorkerId{1}, Incarnation{6}};
  log->Append(EncodeRecord(ShardRecord{newest[0].shards[0].shard, fake.Join()}),
              [](LogSequence) {});
  log->Flush();
  log.reset();
  EXPECT_EQ(RestoreSavedJob(files_, kDir, Step{3}).status().message(),
            "state: not all servers have a checkpoint of at most step 3 (server 0 has steps 8, 4; "
            "server 1 has steps 5, 4)");
  const auto restored = RestoreSavedJob(files_, kDir, Step{7});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->least_step, Step{4});
  EXPECT_EQ(restored->largest_step, Step{5});
  EXPECT_EQ(ReadServers(files_).size(), 2u);
}

// With durability: log, a server without shards has an event log and no checkpoint.
TEST(SavedJobOfManyServersTest, AServerWithoutShardsNeedsNoCheckpoint) {
  FaultyFiles files;
  TrainingJob job(MomentumSetting(), 5, 1000);
  job.Train(3);
  std::vector<Checkpoint> servers = job.Save();
  std::vector<Checkpoint> with_shards;
  for (Checkpoint& server : servers) {
    server.run.join.mutable_config()->mutable_recovery()->set_durability(Recovery::Durability::log);
    if (!server.shards.empty()) with_shards.push_back(server);
  }
  ASSERT_LT(with_shards.size(), 5u);
  Write(files, with_shards);
  for (uint32_t s = 0; s < 5; ++s) ASSERT_TRUE(files.MakeFolder(Folder(s)).ok());
  const auto read = ReadSavedJob(files, kDir);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->servers.size(), 5u);
  EXPECT_EQ(read->largest_step, Step{3});
  EXPECT_TRUE(Reshard(read->servers, 1, 1000).ok());
}

TEST_F(SavedJobTest, ACrashAtAnyOperationLeavesTheOldOrTheNewState) {
  TrainingJob job(MomentumSetting(), 2, 1000);
  job.Train(3);
  const std::vector<Checkpoint> old = job.Save();
  const std::vector<Checkpoint> made = Reshard(old, 3, 1000).value();
  uint64_t operations = 0;
  {
    FaultyFiles files;
    Write(files, old);
    const uint64_t before = files.operations();
    ASSERT_TRUE(ReplaceSavedJob(files, kDir, made).ok());
    operations = files.operations() - before;
  }
  int old_count = 0, new_count = 0;
  for (uint64_t operation = 1; operation <= operations; ++operation) {
    FaultyFiles files(operation);
    Write(files, old);
    files.CrashAt(operation);
    EXPECT_FALSE(ReplaceSavedJob(files, kDir, made).ok());
    files.Restart();
    // A second crash, while the replacement is completed.
    files.CrashAt(1 + operation % 7);
    (void)FinishReplacement(files, kDir);
    files.Crash();
    files.Restart();
    const absl::Status finished = FinishReplacement(files, kDir);
    ASSERT_TRUE(finished.ok()) << finished << ", operation " << operation;
    const std::vector<Checkpoint> servers = ReadServers(files);
    if (servers == old) {
      ++old_count;
      const auto again = ReplaceSavedJob(files, kDir, made);
      ASSERT_TRUE(again.ok()) << again.status() << ", operation " << operation;
    } else {
      ++new_count;
      ASSERT_EQ(servers, made) << "operation " << operation;
    }
  }
  EXPECT_GT(old_count, 0);
  EXPECT_GT(new_count, 0);
}

}  // namespace
}  // namespace thinwire
