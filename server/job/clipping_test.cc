// Tests the clipping of the averaged gradient with several servers in one process.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "gtest/gtest.h"
#include "proto/frame.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/direct_peers.h"
#include "server/job/testing/test_stream.h"
#include "server/protocols/clipping/clipper.h"

namespace thinwire {
namespace {

constexpr uint32_t kFp32 = 1;
constexpr Epoch kEpoch{77};

class ClippingTest : public testing::Test {
 protected:
  ~ClippingTest() override {
    for (auto& streams : streams_) streams.clear();
    // The lead's calls end before the other jobs are destroyed.
    jobs_[0].reset();
  }

  // Starts servers with the rate 1, and step 0 of all workers. All parameters are 0.
  void Start(uint32_t servers, uint32_t workers, double clip_norm) {
    partition_ = Partition::Make({{"w", {2, 2}}, {"b", {3}}}, 0, servers).value();
    JobSpec spec;
    spec.rule = Rule::Sync(workers);
    spec.server_count = servers;
    spec.clip_norm = clip_norm;
    spec.schedule.learning_rate = 1;
    spec.lease = absl::Hours(10);
    for (uint32_t s = 0; s < servers; ++s) {
      std::unique_ptr<Peers> peers;
      if (s == 0) {
        peers = std::make_unique<DirectPeers>([this](ServerId id) -> Job* {
          absl::MutexLock lock(&mu_);
          return unreachable_.contains(id.value) ? nullptr : jobs_[id.value].get();
        });
      }
      ServerSettings settings;
      settings.server = ServerId{s};
      settings.epoch = kEpoch;
      jobs_.push_back(
          MakeJob(spec, settings, clock_, threads_.executors(), std::move(peers)).value());
    }
    streams_.resize(workers);
    for (uint32_t w = 0; w < workers; ++w) {
      for (uint32_t s = 0; s < servers; ++s) {
        Pending<JoinReply> joined;
        jobs_[s]->Join(
            JoinRequestOf(partition_, w, s == 0 ? 0 : 1, s == 0 ? 0 : run_), [] { return false; },
            joined.done());
        ASSERT_TRUE(joined.Get().ok()) << joined.Get().status();
        run_ = joined.Get()->run();
        streams_[w].push_back(std::make_unique<TestStream>(*jobs_[s]));
      }
    }
    for (uint32_t w = 0; w < workers; ++w) {
      for (uint32_t s = 0; s < servers; ++s) {
        WorkerFrame frame = FrameOf(w);
        for (const ShardId shard : partition_.ShardsOf(ServerId{s})) {
          frame.seeds.push_back({shard, Values(shard, 0)});
          frame.reads.push_back({shard, {0}, {0}, kFp32});
        }
        if (!frame.reads.empty()) streams_[w][s]->Send(frame);
      }
    }
    for (uint32_t w = 0; w < workers; ++w) AwaitParameters(w, 0);
  }
  // Pushes VALUE for all parameters of SERVER.
  void Push(uint32_t worker, uint32_t server, uint64_t step, float value) {
    WorkerFrame frame = FrameOf(worker);
    for (const ShardId shard : partition_.ShardsOf(ServerId{server})) {
      PushEntry& push = frame.pushes.emplace_back();
      push.shard = shard;
      push.step = {step};
      push.examples = 1;
      push.read_codec = kFp32;
      push.payload = Values(shard, value);
    }
    if (!frame.pushes.empty()) streams_[worker][server]->Send(frame);
  }
  // Blocks until WORKER has the parameters of STEP from all servers.
  void AwaitParameters(uint32_t worker, uint64_t step) {
    for (uint32_t s = 0; s < jobs_.size(); ++s) {
      for (size_t i = 0; i < partition_.ShardsOf(ServerId{s}).size(); ++i) {
        EXPECT_EQ(streams_[worker][s]->NextParameters().step, Step{step});
      }
    }
  }
  StatusReply Status(uint32_t server) {
    Pending<StatusReply> pending;
    jobs_[server]->Call(StatusRequest(), pending.done());
    return pending.Get().value();
  }
  void Tick(uint32_t server) {
    absl::Notification done;
    jobs_[server]->Tick([&done] { done.Notify(); });
    done.WaitForNotification();
  }
  // Returns the parameters of SERVER, in the order of its shards.
  std::vector<float> Masters(uint32_t server) {
    std::string bytes;
    for (size_t i = 0; i < partition_.ShardsOf(ServerId{server}).size(); ++i) {
      Pending<std::vector<MastersChunk>> pending;
      jobs_[server]->Masters({}, i, pending.done());
      const std::vector<MastersChunk> chunks = pending.Get().value();
      for (const MastersChunk& chunk : chunks) bytes += chunk.values();
    }
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  Pending<LeaveReply> Leave(uint32_t worker, uint32_t server) {
    LeaveRequest request;
    request.set_worker(worker);
    request.set_incarnation(1);
    request.set_run(run_);
    Pending<LeaveReply> pending;
    jobs_[server]->Call(request, pending.done());
    Status(server);  // ends behind the request
    return pending;
  }
  ClipRequest RequestOf(uint64_t generation = 1) const {
    ClipRequest request;
    request.set_job("train");
    request.set_run(run_);
    request.set_generation(generation);
    return request;
  }
  absl::Status Clip(uint32_t server, const ClipRequest& request) {
    Pending<ClipReply> pending;
    jobs_[server]->Call(request, pending.done());
    return pending.Get().status();
  }
  void SetReachable(uint32_t server, bool reachable) {
    absl::MutexLock lock(&mu_);
    if (reachable) {
      unreachable_.erase(server);
    } else {
      unreachable_.insert(server);
    }
  }

  WorkerFrame FrameOf(uint32_t worker) const {
    WorkerFrame frame;
    frame.worker = {worker};
    frame.incarnation = {1};
    frame.generation = {1};
    frame.epoch = kEpoch;
    return frame;
  }
  ByteChain Values(ShardId shard, float value) const {
    return Payload(std::vector<float>(partition_.value_count(shard), value));
  }

  Partition partition_ = Partition::Make({{"w", {1}}}, 0, 1).value();
  ManualClock clock_;
  JobThreads threads_{2};
  uint64_t run_ = 0;
  absl::Mutex mu_;
  std::set<uint32_t> unreachable_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::vector<std::unique_ptr<TestStream>>> streams_;  // by worker and server
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
  clock_.Advance(Clipper::kPatience);
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
  EXPECT_EQ(Clip(1, RequestOf()).code(), absl::StatusCode::kUnavailable);
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
  EXPECT_EQ(Clip(1, RequestOf(/*generation=*/2)).message(),
            "generation: another one (expected 1, got 2)");
  EXPECT_EQ(Clip(0, RequestOf()).code(), absl::StatusCode::kFailedPrecondition);
  ClipRequest request = RequestOf();
  request.set_run(run_ + 1);
  EXPECT_EQ(Clip(1, request).code(), absl::StatusCode::kFailedPrecondition);
  request = RequestOf();
  request.set_squared_norm(std::nan(""));
  EXPECT_EQ(Clip(1, request).code(), absl::StatusCode::kInvalidArgument);
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
