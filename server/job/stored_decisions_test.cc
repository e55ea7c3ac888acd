// Tests that restarted servers keep the decisions of the lead (mode, number of workers, drained
// workers, deals), which are newer than their checkpoints.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "server/job/testing/two_servers.h"

namespace thinwire {
namespace {

class StoredDecisionsTest : public TwoServersTest {};

// The newest checkpoints of both servers are older than the change.
TEST_F(StoredDecisionsTest, InAsyncNoRestartForgetsAChangeOfTheMode) {
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
TEST_F(StoredDecisionsTest, ARollbackForgetsNoChangeOfTheMode) {
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
TEST_F(StoredDecisionsTest, AfterARollbackANewWorkerIsDealtExamplesSoon) {
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

TEST_F(StoredDecisionsTest, ALeadWhoseClockWasSetBackChangesTheMode) {
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
TEST_F(StoredDecisionsTest, ALeadForgetsNoReductionAndNoDrain) {
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

TEST_F(StoredDecisionsTest, AReductionAndADrainThatCannotBeStoredAreRefused) {
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
TEST_F(StoredDecisionsTest, InAsyncALeadForgetsNoDeal) {
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

TEST_F(StoredDecisionsTest, InAsyncAModeThatCannotBeStoredIsRefused) {
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

}  // namespace
}  // namespace thinwire
