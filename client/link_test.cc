#include "client/link.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/in_process_transport.h"
#include "common/clock.h"

namespace thinwire::client {
namespace {

ByteChain Bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return ByteChain(std::vector<std::byte>(first, first + text.size()));
}

// Sends every frame back. All calls come from the transport's thread.
class EchoServer final : public InProcessServer {
 public:
  void Opened(uint64_t stream, Peer peer) override { streams_[stream] = std::move(peer); }
  void Frame(uint64_t stream, const ByteChain& frame) override { streams_.at(stream).send(frame); }
  void Closed(uint64_t stream) override { streams_.erase(stream); }
  absl::StatusOr<JoinReply> Join(const JoinRequest&) override { return JoinReply(); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override {
    return HeartbeatReply();
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest&) override { return LeaveReply(); }

 private:
  std::map<uint64_t, Peer> streams_;
};

// A queue of frames that must all come back; a lost stream queues again what has not.
class LinkTest : public ::testing::Test {
 protected:
  ~LinkTest() override {
    loop_.Run([this] { link_.Close(); });
    loop_.Stop();
  }

  void Send(const std::vector<std::string>& frames) {
    loop_.Run([&] {
      unanswered_.insert(unanswered_.end(), frames.begin(), frames.end());
      unsent_.insert(unsent_.end(), frames.begin(), frames.end());
      link_.Pump();
    });
  }

  Link::Hooks Hooks() {
    return {.has_unsent = [this] { return !unsent_.empty(); },
            .next_frame =
                [this] {
                  if (unsent_.empty()) return ByteChain();
                  const std::string frame = unsent_.front();
                  unsent_.pop_front();
                  return Bytes(frame);
                },
            .on_written = [this] { ++written_count_; },
            .on_frame =
                [this](const ByteChain& frame) {
                  ASSERT_FALSE(unanswered_.empty());
                  EXPECT_EQ(frame, Bytes(unanswered_.front()));
                  unanswered_.pop_front();
                  if (unanswered_.empty()) done_.Notify();
                },
            .on_lost =
                [this](const absl::Status& status) {
                  ++lost_count_;
                  last_loss_ = status;
                  unsent_ = unanswered_;
                  if (lost_count_ == refusals_awaited_) refused_.Notify();
                }};
  }

  EchoServer server_;
  InProcessTransport transport_{{&server_}};
  SteadyClock clock_;
  std::deque<std::string> unsent_, unanswered_;
  int written_count_ = 0, lost_count_ = 0, refusals_awaited_ = 0;
  absl::Status last_loss_;
  absl::Notification done_, refused_;
  Loop loop_{clock_};
  Link link_{ServerId{0}, transport_, loop_, Hooks()};
};

TEST_F(LinkTest, FramesGoAndComeInOrder) {
  Send({"a", "b", "c", "d"});
  done_.WaitForNotification();
  loop_.Run([this] { EXPECT_EQ(lost_count_, 0); });
}

TEST_F(LinkTest, ALostStreamIsOpenedAgainAndItsFramesSentAgain) {
  transport_.LoseReplies(ServerId{0}, 2);
  Send({"a", "b", "c", "d"});
  done_.WaitForNotification();
  loop_.Run([this] {
    EXPECT_EQ(lost_count_, 2);
    EXPECT_GE(written_count_, 4);
  });
}

TEST_F(LinkTest, AServerThatRefusesIsTriedAgain) {
  transport_.Refuse(ServerId{0}, true);
  refusals_awaited_ = 3;
  Send({"a"});
  refused_.WaitForNotification();
  EXPECT_EQ(last_loss_.code(), absl::StatusCode::kUnavailable);
  transport_.Refuse(ServerId{0}, false);
  done_.WaitForNotification();
}

TEST_F(LinkTest, NoStreamIsOpenedForNothing) {
  transport_.Refuse(ServerId{0}, true);
  loop_.Run([this] { link_.Pump(); });
  transport_.Refuse(ServerId{0}, false);
  loop_.Run([this] { EXPECT_EQ(lost_count_, 0); });
}

}  // namespace
}  // namespace thinwire::client
