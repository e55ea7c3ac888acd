#include "client/exchange/server_link.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/exchange/exchange_fixture.h"
#include "common/codec/codec.h"

namespace thinwire::client {
namespace {

class ServerLinkTest : public ExchangeFixture {
 protected:
  // Queues and sends a push of STEP for every shard of server 0, one message per push.
  void PushAll(uint64_t step) {
    loop_->Run([this, step] {
      const float zeros[4096] = {};
      pushes_.BeginStep(Step{step}, 1, 1);
      for (const ShardId shard : shards_) {
        std::vector<std::byte> payload(fp32_->MaxPayloadBytes(4096));
        payload.resize(fp32_->Encode(zeros, RandomKeys(), payload));
        links_[0]->queue().Push({.shard = shard,
                                 .step = Step{step},
                                 .examples = 1,
                                 .payload = ByteChain(std::move(payload))});
        links_[0]->SendQueued();
      }
    });
  }

  const std::vector<ShardId> shards_ = partition_.ShardsOf(ServerId{0});
  const std::unique_ptr<const Codec> fp32_ = *MakeCodec({.id = CodecId::kFp32});
};

TEST_F(ServerLinkTest, PushesAndVerdictsKeepTheirOrder) {
  PushAll(0);
  WaitForVerdicts(shards_.size());
  EXPECT_EQ(verdicts(), shards_);
  std::vector<ShardId> received;
  for (const PushEntry& push : servers_[0].pushes()) received.push_back(push.shard);
  EXPECT_EQ(received, shards_);
  EXPECT_EQ(counters().reconnects(), 0u);
}

TEST_F(ServerLinkTest, ALostStreamIsReopenedAndUnansweredPushesAreSentAgain) {
  transport_.LoseReplies(ServerId{0}, 2);
  PushAll(0);
  WaitForVerdicts(shards_.size());
  EXPECT_EQ(counters().reconnects(), 2u);
  EXPECT_EQ(servers_[0].pushes().size(), shards_.size()) << "each push counts once";
  loop_->Run([this] { EXPECT_TRUE(links_[0]->queue().unjudged().empty()); });
}

TEST_F(ServerLinkTest, ALostStreamIsReopenedAlthoughNothingIsQueued) {
  PushAll(0);
  WaitForVerdicts(shards_.size());
  transport_.DropStreams(ServerId{0});
  while (counters().reconnects() == 0) std::this_thread::yield();
  // Returns true if the server will count as refusing streams unless the link opens one.
  const auto lost = [this] {
    bool outage = false;
    loop_->Run([&] {
      const absl::Time later = loop_->Now() + 2 * options_.silence;
      links_[0]->liveness().HeartbeatAnswered(later);
      outage = links_[0]->liveness().OutageAt(later).has_value();
    });
    return outage;
  };
  while (lost()) std::this_thread::yield();
  EXPECT_EQ(servers_[0].stream_count(), 1);
  EXPECT_EQ(counters().reconnects(), 1u);
}

TEST_F(ServerLinkTest, ARefusedStreamIsRetried) {
  transport_.Refuse(ServerId{0}, true);
  PushAll(0);
  while (counters().reconnects() < 3) std::this_thread::yield();
  loop_->Run([this] {
    const auto outage =
        links_[0]->liveness().OutageAt(loop_->Now() + options_.silence + absl::Seconds(1));
    ASSERT_TRUE(outage.has_value());
    EXPECT_EQ(outage->last_error.code(), absl::StatusCode::kUnavailable);
  });
  transport_.Refuse(ServerId{0}, false);
  WaitForVerdicts(shards_.size());
}

class FailureObserver final : public ServerLink::Observer {
 public:
  void OnMessage(ServerLink&, const ServerFrame&) override { ADD_FAILURE() << "no message"; }
  void OnQueueRoom() override {}
  void OnFailure(absl::Status failure) override {
    failure_ = std::move(failure);
    failed_.Notify();
  }
  absl::Status WaitForFailure() {
    failed_.WaitForNotification();
    return failure_;
  }

 private:
  absl::Status failure_;
  absl::Notification failed_;
};

TEST_F(ServerLinkTest, NoStreamIsOpenedWithoutMessages) {
  FailureObserver observer;
  ServerLink link(parts_, ServerId{1}, JoinReply(), Incarnation{1}, absl::Seconds(1), observer);
  transport_.Refuse(ServerId{1}, true);
  loop_->Run([&] { link.SendQueued(); });
  transport_.Refuse(ServerId{1}, false);
  loop_->Run([&] { link.Close(); });
  EXPECT_EQ(counters().reconnects(), 0u);
}

TEST_F(ServerLinkTest, ShardsWithoutValuesAreSeeded) {
  loop_->Run([this] { reads_.ReadAll(Step{0}); });
  ASSERT_TRUE(progress_.WaitAll().ok());
  EXPECT_EQ(servers_[0].seed_count() + servers_[1].seed_count(),
            static_cast<int>(partition_.shard_count()));
  EXPECT_EQ(servers_[0].masters(shards_[0])[0], initial_[0]);
}

TEST_F(ServerLinkTest, HeartbeatsOfTheLeadReportLiveWorkers) {
  EXPECT_TRUE(report_.live().empty());
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  while (report_.live().empty()) std::this_thread::yield();
  EXPECT_EQ(report_.live(), std::vector{WorkerId{2}});
}

TEST_F(ServerLinkTest, AHeartbeatReportsARestart) {
  servers_[1].Restart(Epoch{2});
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(),
            absl::AbortedError("server 1 (in process): server 1 lost its state: it was restarted "
                               "(expected epoch 1, got 2)"));
}

TEST_F(ServerLinkTest, AHeartbeatReportsAFencedWorker) {
  servers_[1].Fence();
  loop_->Run([this] { links_[1]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), FencedError(WorkerId{2}));
}

TEST_F(ServerLinkTest, AResumedLinkSendsEntriesWhenAHeartbeatIsAnswered) {
  loop_->Run([this] { links_[0]->Resume(); });
  PushAll(0);
  transport_.Hold(ServerId{0}, false);  // returns after all earlier messages have been delivered
  EXPECT_TRUE(servers_[0].pushes().empty());
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  WaitForVerdicts(shards_.size());
}

TEST_F(ServerLinkTest, AResumedLinkOfAFencedWorkerSendsNothing) {
  servers_[0].Fence();
  loop_->Run([this] { links_[0]->Resume(); });
  PushAll(0);
  loop_->Run([this] { links_[0]->StartHeartbeats(); });
  EXPECT_EQ(WaitForFailure(), FencedError(WorkerId{2}));
  transport_.Hold(ServerId{0}, false);  // returns after all earlier messages have been delivered
  EXPECT_TRUE(servers_[0].pushes().empty());
}

// A server that answers every frame with bytes that are not a valid message.
class MalformedServer final : public InProcessServer {
 public:
  void Opened(uint64_t, Peer peer) override { peer_ = std::move(peer); }
  void Frame(uint64_t, const ByteChain&) override {
    peer_.send(ByteChain(std::vector<std::byte>(5, std::byte{0xff})));
  }
  void Closed(uint64_t) override {}
  absl::StatusOr<JoinReply> Join(const JoinRequest&) override { return JoinReply(); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override {
    return HeartbeatReply();
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest&) override { return LeaveReply(); }

 private:
  Peer peer_;
};

TEST_F(ServerLinkTest, AMalformedMessageIsAnErrorThatNamesTheServer) {
  MalformedServer server;
  InProcessTransport transport({&server});
  const ExchangeParts parts = {.options = options_,
                               .partition = partition_,
                               .transport = transport,
                               .loop = loop_,
                               .replica = replica_,
                               .encoder = *encoder_,
                               .tuner = nullptr,
                               .progress = progress_,
                               .report = report_};
  FailureObserver observer;
  ServerLink link(parts, ServerId{0}, JoinReply(), Incarnation{1}, absl::Seconds(1), observer);
  loop_->Run([&] {
    link.queue().Read(shards_[0], Step{0});
    link.SendQueued();
  });
  const absl::Status failure = observer.WaitForFailure();
  EXPECT_EQ(failure.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(failure.message()).find("server 0 (in process): "), 0u) << failure;
  loop_->Run([&] { link.Close(); });
}

}  // namespace
}  // namespace thinwire::client
