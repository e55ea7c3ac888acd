// Tests runs whose servers and workers stop, or are killed, and are started again.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "proto/control.pb.h"
#include "server/job/testing/two_servers.h"
#include "server/protocols/state/membership.h"

namespace thinwire {
namespace {

class StoppedRunTest : public TwoServersTest {};

TEST_F(StoppedRunTest, AStoppedRunGoesOnFromItsLastStep) {
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
class ResumedRunTest : public TwoServersTest, public testing::WithParamInterface<Durability> {
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

}  // namespace
}  // namespace thinwire
