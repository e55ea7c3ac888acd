#include "client/exchange/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/exchange/step_progress.h"
#include "client/testing/fake_server.h"
#include "client/testing/in_process_transport.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"

namespace thinwire::client {
namespace {

using ::testing::HasSubstr;

// A running clock that a test can set forward.
class JumpingClock final : public Clock {
 public:
  absl::Time Now() override { return steady_.Now() + absl::Nanoseconds(jumped_ns_.load()); }
  void Jump(absl::Duration by) { jumped_ns_ += absl::ToInt64Nanoseconds(by); }

 private:
  SteadyClock steady_;
  std::atomic<int64_t> jumped_ns_ = 0;
};

// An exchange with two fake servers. The silence limit is 10 s.
class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() {
    options_.worker = WorkerId{2};
    options_.worker_count = 3;
    options_.server_count = 2;
    options_.silence = absl::Seconds(10);
    options_.heartbeat_interval = absl::Milliseconds(5);
  }
  ~ExchangeTest() override {
    loop_->Run([this] {
      if (exchange_ != nullptr) exchange_->Stop();
    });
    loop_->Stop();
  }

  // Starts the exchange and blocks until all parameters have arrived.
  void Start() {
    const std::vector<float> initial(partition_.value_count(), 1.5f);
    const std::vector<std::span<const float>> spans = {initial};
    ASSERT_TRUE(replica_.Fill(spans).ok());
    std::vector<JoinReply> replies;
    JoinRequest request;
    request.set_partition_hash(partition_.hash());
    for (FakeServer& server : servers_) replies.push_back(*server.Join(request));
    exchange_ = std::make_unique<Exchange>(ExchangeParts{.options = options_,
                                                         .partition = partition_,
                                                         .transport = transport_,
                                                         .loop = loop_,
                                                         .replica = replica_,
                                                         .encoder = *encoder_,
                                                         .tuner = nullptr,
                                                         .meter = meter_,
                                                         .listener = progress_,
                                                         .report = report_,
                                                         .worker_news = worker_news_,
                                                         .job_news = job_news_,
                                                         .deals = deals_},
                                           request, replies);
    loop_->Run([this] { exchange_->Start(Step{0}); });
    ASSERT_TRUE(progress_.WaitAll().ok());
  }

  // Passes the gradient of a step to the exchange.
  void Push(uint64_t step) {
    progress_.BeginStep();
    loop_->Run([&] {
      exchange_->pushes().BeginStep(Step{step}, 8, 1, 1);
      exchange_->pushes().Ready(0, gradient_, nullptr);
    });
  }

  // Advances the clock by SECONDS in parts that are shorter than a suspension of the process.
  void Pass(int seconds) {
    for (int passed = 0; passed < seconds; passed += 4) {
      clock_.Jump(absl::Seconds(4));
      AwaitHeartbeat(0);
    }
  }

  // Blocks until the exchange has handled the reply to a heartbeat that SERVER received after this
  // call, or has failed.
  void AwaitHeartbeat(uint32_t server) {
    // A link sends a heartbeat only after it has handled the reply to the last one.
    const int next = servers_[server].heartbeat_count() + 2;
    while (servers_[server].heartbeat_count() < next && progress_.failure().ok()) {
      std::this_thread::yield();
    }
  }

  std::optional<ServerId> Lost() {
    std::optional<ServerId> lost;
    loop_->Run([&] { lost = exchange_->lost(); });
    return lost;
  }

  const Partition partition_ = *Partition::Make({{"w", {4, 4096}}}, 4096, 2);
  const std::vector<float> gradient_ = std::vector<float>(partition_.value_count(), 1.0f);
  ClientOptions options_;
  FakeServer servers_[2] = {FakeServer(partition_, ServerId{0}),
                            FakeServer(partition_, ServerId{1})};
  InProcessTransport transport_{{&servers_[0], &servers_[1]}};
  JumpingClock clock_;
  Replica replica_{partition_};
  const std::unique_ptr<PushEncoder> encoder_ = *PushEncoder::Make(partition_, {});
  StepProgress progress_{partition_, absl::ZeroDuration(), clock_};
  WireMeter meter_;
  StatusReport report_;
  WorkerNews worker_news_;
  JobNews job_news_;
  DealBook deals_;
  const std::shared_ptr<Executor> loop_ = std::make_shared<ThreadExecutor>(clock_);
  std::unique_ptr<Exchange> exchange_;
};

TEST_F(ExchangeTest, StartRequestsTheParametersAndSendsHeartbeats) {
  Start();
  EXPECT_EQ(replica_.tensor(0)[0], 1.5f);
  for (const uint32_t s : {0u, 1u}) AwaitHeartbeat(s);
  EXPECT_EQ(job_news_.live(), std::vector{WorkerId{2}});
}

TEST_F(ExchangeTest, HeartbeatsAreAtMostAThirdOfALeaseApart) {
  options_.heartbeat_interval = absl::Hours(1);
  servers_[0].set_lease_seconds(0.03);
  Start();
  for (const uint32_t s : {0u, 1u}) AwaitHeartbeat(s);
  EXPECT_TRUE(progress_.failure().ok());
}

TEST_F(ExchangeTest, ASilentServerEndsTheExchangeAndIsNamed) {
  Start();
  transport_.Mute(ServerId{1}, true);
  while (progress_.failure().ok()) {
    clock_.Jump(absl::Seconds(4));
    AwaitHeartbeat(0);
  }
  EXPECT_EQ(progress_.failure().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(progress_.failure().message()),
              HasSubstr("server 1 (in process): silent for 1"));
  EXPECT_THAT(std::string(progress_.failure().message()),
              HasSubstr("while worker 2 computed step 0"));
  EXPECT_EQ(Lost(), ServerId{1});
}

TEST_F(ExchangeTest, AServerIsWaitedForUntilItReturnsWithItsState) {
  options_.server_return = absl::Minutes(10);
  Start();
  transport_.Refuse(ServerId{1}, true);
  Push(0);
  Pass(120);
  EXPECT_EQ(progress_.failure(), absl::OkStatus());
  while (report_.waiting() != "waiting for server 1 (in process): connection refused") {
    std::this_thread::yield();
  }
  servers_[1].Restart(/*keep_state=*/true);
  transport_.Refuse(ServerId{1}, false);
  EXPECT_EQ(*progress_.WaitNext(), Step{1});
  EXPECT_EQ(report_.counters().rejoins(), 1u);
  while (!report_.waiting().empty()) std::this_thread::yield();
}

TEST_F(ExchangeTest, AServerThatDoesNotReturnInTimeEndsTheExchange) {
  options_.server_return = absl::Seconds(40);
  Start();
  transport_.Refuse(ServerId{1}, true);
  Push(0);
  while (progress_.failure().ok()) Pass(4);
  EXPECT_EQ(progress_.failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(progress_.failure().message()),
              HasSubstr("server 1 (in process): silent for 4"));
  EXPECT_EQ(Lost(), ServerId{1});
}

// The random wait for the stream is up to two seconds long at the end of the outage.
TEST_F(ExchangeTest, TheFirstAnsweredHeartbeatAfterAnOutageOpensTheStream) {
  options_.server_return = absl::Minutes(10);
  Start();
  transport_.Refuse(ServerId{1}, true);
  while (report_.counters().reconnects() < 12) Pass(4);
  transport_.Refuse(ServerId{1}, false);
  AwaitHeartbeat(1);
  // Returns after the transport has handled all earlier calls.
  transport_.Hold(ServerId{1}, false);
  EXPECT_EQ(servers_[1].stream_count(), 1);
}

TEST_F(ExchangeTest, BothServersAreJoinedAgainIfBothAreRestarted) {
  options_.server_return = absl::Minutes(10);
  Start();
  for (const uint32_t s : {0u, 1u}) transport_.Refuse(ServerId{s}, true);
  Push(0);
  for (const uint32_t s : {0u, 1u}) {
    servers_[s].Restart(/*keep_state=*/true);
    transport_.Refuse(ServerId{s}, false);
  }
  EXPECT_EQ(*progress_.WaitNext(), Step{1});
  EXPECT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(report_.counters().rejoins(), 2u);
  for (const FakeServer& server : servers_) EXPECT_EQ(server.pushes().size(), 2u);
}

TEST_F(ExchangeTest, AStreamThatIsLostWhileTheWorkerComputesIsNoOutage) {
  Start();
  transport_.DropStreams(ServerId{1});
  for (int i = 0; i < 5; ++i) {
    clock_.Jump(absl::Seconds(4));
    for (const uint32_t s : {0u, 1u}) AwaitHeartbeat(s);
  }
  EXPECT_EQ(progress_.failure(), absl::OkStatus());
  EXPECT_EQ(Lost(), std::nullopt);
}

TEST_F(ExchangeTest, TheProcesssOwnSuspensionIsNoSilenceOfTheServers) {
  Start();
  clock_.Jump(absl::Hours(1));
  for (const uint32_t s : {0u, 1u}) AwaitHeartbeat(s);
  EXPECT_EQ(progress_.failure(), absl::OkStatus());
}

TEST_F(ExchangeTest, AWorkerThatWasFencedDuringItsSuspensionPushesNothing) {
  Start();
  loop_->Run([&] {
    for (FakeServer& server : servers_) server.Fence();
    clock_.Jump(absl::Minutes(1));
    exchange_->pushes().BeginStep(Step{0}, 8, 1, 1);
    exchange_->pushes().Ready(0, gradient_, nullptr);
  });
  EXPECT_EQ(progress_.WaitNext().status(), FencedError({.worker = WorkerId{2}}));
  for (const FakeServer& server : servers_) EXPECT_TRUE(server.pushes().empty());
}

TEST_F(ExchangeTest, ARollbackOfOneServerStopsTheExchange) {
  for (FakeServer& server : servers_) server.set_by_round();
  Start();
  servers_[1].SaveCheckpoint();
  servers_[1].RollBack(Generation{2});
  while (progress_.failure().ok()) std::this_thread::yield();
  EXPECT_EQ(progress_.rollback(), Generation{2});
  EXPECT_EQ(progress_.failure(),
            absl::AbortedError("the servers continue from an earlier step (generation 2)"));
  loop_->Run([] {});
  EXPECT_EQ(servers_[0].stream_count() + servers_[1].stream_count(), 0);
  EXPECT_EQ(Lost(), std::nullopt) << "no server is lost";
}

TEST_F(ExchangeTest, TheFirstFailureStopsTheExchange) {
  Start();
  loop_->Run([this] {
    exchange_->Fail(absl::InternalError("first"));
    exchange_->Fail(absl::AbortedError("second"));
  });
  EXPECT_EQ(progress_.failure(), absl::InternalError("first"));
  EXPECT_EQ(servers_[0].stream_count() + servers_[1].stream_count(), 0);
  EXPECT_EQ(Lost(), std::nullopt) << "no server is lost";
}

}  // namespace
}  // namespace thinwire::client
