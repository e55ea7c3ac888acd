// Tests requests of operators: a checkpoint now, and the return of a running job to a checkpoint.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "server/durable/checkpoint.h"
#include "server/job/testing/two_servers.h"

namespace thinwire {
namespace {

class RequestedCheckpointsTest : public TwoServersTest {};

TEST_F(RequestedCheckpointsTest, AnOperatorGetsACheckpointOfTheNextAnnouncedStep) {
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

TEST_F(RequestedCheckpointsTest, AnOperatorGetsACheckpointOfAFinishedJob) {
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

TEST_F(RequestedCheckpointsTest, InAsyncAndWithALogAnOperatorGetsACheckpointAtOnce) {
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

TEST_F(RequestedCheckpointsTest, ACheckpointThatCannotBeMadeNamesTheServerAndTheCause) {
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

TEST_F(RequestedCheckpointsTest, WithoutDurabilityThereIsNoCheckpointToMakeOrToRestore) {
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

TEST_F(RequestedCheckpointsTest, AnOperatorSendsARunningJobBack) {
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

// No restart undoes the return, or continues from a checkpoint of the abandoned generation.
TEST_F(RequestedCheckpointsTest, RestartsAfterAReturnContinueFromItsStep) {
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
TEST_F(RequestedCheckpointsTest, ALeadThatIsKilledWithinAReturnCompletesIt) {
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

TEST_F(RequestedCheckpointsTest, AJobWhoseServersDoNotGoBackTogetherIsRestoredOffline) {
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

}  // namespace
}  // namespace thinwire
