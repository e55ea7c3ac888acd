#include "client/exchange/heartbeats.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/exchange/exchange_fixture.h"

namespace thinwire::client {
namespace {

class HeartbeatsTest : public ExchangeFixture {
 protected:
  struct Answer {
    bool ok;
    bool after_failure;
    bool operator==(const Answer&) const = default;
  };

  HeartbeatsTest() {
    heartbeats_ = std::make_unique<Heartbeats>(
        parts_, ServerId{0}, /*interval=*/absl::Hours(1), [] { return HeartbeatRequest(); },
        [this](absl::Time, const HeartbeatRequest&, const absl::StatusOr<HeartbeatReply>& reply) {
          absl::MutexLock lock(&mu_);
          answers_.push_back({reply.ok(), heartbeats_->after_failure()});
        });
  }
  ~HeartbeatsTest() override {
    loop_->Run([this] { heartbeats_.reset(); });
  }

  // Calls SendNow COUNT times in one task.
  void SendNow(int count) {
    loop_->Run([&] {
      for (int i = 0; i < count; ++i) heartbeats_->SendNow();
    });
  }
  // Blocks until COUNT heartbeats are answered, and returns all answers.
  std::vector<Answer> WaitForAnswers(size_t count) {
    const auto answered = [&] { return answers_.size() >= count; };
    absl::MutexLock lock(&mu_, absl::Condition(&answered));
    return answers_;
  }
  // Returns when the transport and the loop have handled everything that was sent before.
  void Drain() {
    transport_.Hold(ServerId{0}, false);
    loop_->Run([] {});
  }

  std::unique_ptr<Heartbeats> heartbeats_;
  absl::Mutex mu_;
  std::vector<Answer> answers_;
};

TEST_F(HeartbeatsTest, OneMoreCallFollowsThePendingOne) {
  SendNow(3);
  WaitForAnswers(2);
  Drain();
  EXPECT_EQ(servers_[0].heartbeat_count(), 2);
}

TEST_F(HeartbeatsTest, TheReplyAfterAFailureSaysSo) {
  transport_.Refuse(ServerId{0}, true);
  SendNow(1);
  WaitForAnswers(1);
  transport_.Refuse(ServerId{0}, false);
  SendNow(2);
  const std::vector<Answer> expected = {
      {.ok = false, .after_failure = false},
      {.ok = true, .after_failure = true},
      {.ok = true, .after_failure = false},
  };
  EXPECT_TRUE(WaitForAnswers(3) == expected);
}

TEST_F(HeartbeatsTest, AfterStopNoHeartbeatIsSentAndThePendingReplyIsIgnored) {
  loop_->Run([this] {
    heartbeats_->SendNow();
    heartbeats_->Stop();
    heartbeats_->SendNow();
  });
  Drain();
  EXPECT_EQ(servers_[0].heartbeat_count(), 1);
  EXPECT_TRUE(WaitForAnswers(0).empty());
}

}  // namespace
}  // namespace thinwire::client
