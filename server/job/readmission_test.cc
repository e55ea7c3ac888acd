// Tests whom restarted servers admit: worker processes that their checkpoints do not know, and
// servers that lost their folders.
#include <gtest/gtest.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/spec/recovery_spec.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "server/job/testing/two_servers.h"
#include "server/protocols/state/membership.h"

namespace thinwire {
namespace {

class ReadmissionTest : public TwoServersTest {};

TEST_F(ReadmissionTest, ANewProcessGetsAnIncarnationThatNoEarlierGenerationHasAssigned) {
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

TEST_F(ReadmissionTest, AProcessThatTheCheckpointDoesNotKnowMayJoinAgain) {
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

TEST_F(ReadmissionTest, InAsyncAServerContinuesAloneUnderTheNextGeneration) {
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

// The lead's generation is higher than that of server 1, which therefore cannot know the
// incarnation.
TEST_F(ReadmissionTest, InAsyncAServerAdoptsAProcessThatItsCheckpointDoesNotKnow) {
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

TEST_F(ReadmissionTest, InAsyncTheLeadAdoptsAProcessThatItsCheckpointDoesNotKnow) {
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
TEST_F(ReadmissionTest, InAsyncARestartedLeadAdmitsNoServerThatLostItsFolder) {
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

TEST_F(ReadmissionTest, ALeadThatHasGoneBackAdmitsNoServerThatLostItsFolder) {
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

TEST_F(ReadmissionTest, WithALogARestartedLeadAdmitsNoServerThatLostItsFolder) {
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
TEST_F(ReadmissionTest, ALeadThatIsKilledBeforeItAdmitsAServerAdmitsItLater) {
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

}  // namespace
}  // namespace thinwire
