// Tests the clipping of the averaged gradient with several servers in one process.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/job/testing/job_servers.h"
#include "server/protocols/sums/shard_sums.h"

namespace thinwire {
namespace {

class ClippingTest : public JobServersTest {
 protected:
  // Starts servers with step 0 of all workers. All parameters are 0.
  void Start(uint32_t servers, uint32_t workers, double clip_norm) {
    JobSpec spec;
    spec.rule = Rule::Sync(workers);
    spec.server_count = servers;
    spec.clip_norm = clip_norm;
    spec.schedule.learning_rate = 1;
    StartServers(spec, {{"w", {2, 2}}, {"b", {3}}});
    Begin([this](ShardId shard) { return Values(shard, 0); });
  }
};

TEST_F(ClippingTest, TheNormIsThatOverTheShardsOfAllServers) {
  Start(/*servers=*/2, /*workers=*/2, /*clip_norm=*/std::sqrt(7.0));
  for (uint32_t s = 0; s < 2; ++s) ASSERT_FALSE(Masters(s).empty());
  // The mean is 4 for each of the seven parameters.
  for (uint32_t s = 0; s < 2; ++s) Push(0, s, 0, 3);
  Push(1, 1, 0, 5);
  EXPECT_EQ(Status(1).shards(0).version(), 0u) << "server 0 lacks a gradient";
  Push(1, 0, 0, 5);
  for (uint32_t w = 0; w < 2; ++w) AwaitParameters(w, 1);
  for (uint32_t s = 0; s < 2; ++s) {
    for (const float value : Masters(s)) EXPECT_FLOAT_EQ(value, -1);
  }
  // A gradient below the limit is not changed.
  for (uint32_t w = 0; w < 2; ++w) {
    for (uint32_t s = 0; s < 2; ++s) Push(w, s, 1, 0.5);
  }
  for (uint32_t w = 0; w < 2; ++w) AwaitParameters(w, 2);
  for (uint32_t s = 0; s < 2; ++s) {
    for (const float value : Masters(s)) EXPECT_FLOAT_EQ(value, -1.5);
  }
  EXPECT_EQ(Status(0).clipped_updates(), 1u);
  EXPECT_FLOAT_EQ(Status(0).gradient_norm(), 0.5 * std::sqrt(7.0));
  EXPECT_EQ(Status(1).clipped_updates(), 0u) << "only the lead counts";
}

TEST_F(ClippingTest, OneServerClipsAlone) {
  Start(1, 1, std::sqrt(7.0));
  Push(0, 0, 0, 4);
  AwaitParameters(0, 1);
  for (const float value : Masters(0)) EXPECT_FLOAT_EQ(value, -1);
}

TEST_F(ClippingTest, AServerWithoutAShardTakesNoPart) {
  Start(4, 1, std::sqrt(7.0));
  uint32_t empty_count = 0;
  for (uint32_t s = 0; s < 4; ++s) empty_count += partition_.ShardsOf(ServerId{s}).empty() ? 1 : 0;
  ASSERT_EQ(empty_count, 2u);
  for (uint64_t step = 0; step < 3; ++step) {
    for (uint32_t s = 0; s < 4; ++s) Push(0, s, step, 4);
    AwaitParameters(0, step + 1);
  }
  for (uint32_t s = 0; s < 4; ++s) {
    for (const float value : Masters(s)) EXPECT_FLOAT_EQ(value, -3);
  }
  EXPECT_EQ(Status(0).clipped_updates(), 3u);
}

TEST_F(ClippingTest, TheLastLeaveWaitsForTheLastRound) {
  Start(2, 1, std::sqrt(7.0));
  Push(0, 1, 0, 4);
  Pending<LeaveReply> left = Leave(0, 1);
  Status(1);
  EXPECT_FALSE(left.ready());
  Push(0, 0, 0, 4);
  EXPECT_TRUE(left.Get().ok());
  EXPECT_TRUE(Leave(0, 0).Get().ok());
  for (uint32_t s = 0; s < 2; ++s) {
    for (const float value : Masters(s)) EXPECT_FLOAT_EQ(value, -1);
  }
}

TEST_F(ClippingTest, TheLastLeaveDoesNotWaitLongForALostServer) {
  Start(2, 1, 1);
  Push(0, 1, 0, 4);
  Pending<LeaveReply> left = Leave(0, 1);
  clock_.Advance(ShardSums::kPatience);
  Tick(1);
  EXPECT_TRUE(left.Get().ok());
}

TEST_F(ClippingTest, AStopEndsTheWaits) {
  Start(2, 1, 1);
  Push(0, 1, 0, 4);
  Pending<LeaveReply> left = Leave(0, 1);
  absl::Notification stopped;
  jobs_[1]->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  EXPECT_TRUE(left.Get().ok());
  EXPECT_EQ(Sum(1, RequestOf()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClippingTest, AFailedCallIsMadeAgain) {
  Start(2, 1, std::sqrt(7.0));
  SetReachable(1, false);
  for (uint32_t s = 0; s < 2; ++s) Push(0, s, 0, 4);
  for (int i = 0; i < 3; ++i) Tick(0);
  SetReachable(1, true);
  // The call after the first round fails, or the first round waits for a new call.
  for (int i = 0; i < 100; ++i) {
    Tick(0);
    Status(1);
  }
  AwaitParameters(0, 1);
  for (uint32_t s = 0; s < 2; ++s) {
    for (const float value : Masters(s)) EXPECT_FLOAT_EQ(value, -1);
  }
}

// Another worker's weight of 0, or a refused gradient, may leave the shards of one server without a
// gradient of the round.
TEST_F(ClippingTest, AServerWithoutAGradientAddsNothing) {
  Start(2, 1, 2 * std::sqrt(3.0));
  const uint32_t of_three = Masters(0).size() == 3 ? 0 : 1;
  Push(0, 1 - of_three, 0, std::numeric_limits<float>::infinity());
  Push(0, of_three, 0, 4);
  AwaitParameters(0, 1);
  for (const float value : Masters(of_three)) EXPECT_FLOAT_EQ(value, -2);
  for (const float value : Masters(1 - of_three)) EXPECT_EQ(value, 0);
  for (uint32_t s = 0; s < 2; ++s) Push(0, s, 1, 0.5);
  AwaitParameters(0, 2);
  for (const float value : Masters(1 - of_three)) EXPECT_EQ(value, -0.5);
}

TEST_F(ClippingTest, WrongCallsAreRefused) {
  Start(2, 1, 1);
  EXPECT_EQ(Sum(1, RequestOf(/*generation=*/2)).message(),
            "generation: another one (expected 1, got 2)");
  EXPECT_EQ(Sum(0, RequestOf()).code(), absl::StatusCode::kFailedPrecondition);
  SumRequest request = RequestOf();
  request.set_run(run_ + 1);
  EXPECT_EQ(Sum(1, request).code(), absl::StatusCode::kFailedPrecondition);
  request = RequestOf();
  request.add_sums()->set_update(std::nan(""));
  EXPECT_EQ(Sum(1, request).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ClippingTest, AnotherModeIsRefused) {
  Start(2, 1, 1);
  SetModeRequest request;
  request.mutable_consistency()->set_mode(Consistency::Mode::async);
  Pending<SetModeReply> pending;
  jobs_[0]->Call(request, pending.done());
  EXPECT_EQ(pending.Get().status().message(),
            "clip_norm: only valid with mode: sync (got mode: async)");
}

}  // namespace
}  // namespace thinwire
