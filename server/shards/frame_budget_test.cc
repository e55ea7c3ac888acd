#include "server/shards/frame_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/shards/memory_plan.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;

constexpr int kFrames = 4;

// A stream whose peer sends a frame whenever the server requests one, if the test says so.
class Stream {
 public:
  Stream(FrameBudget& budget, int number, std::vector<int>& requests)
      : window_(std::make_shared<FrameWindow>(budget, kFrames, [this, number, &requests] {
          ++request_count_;
          requests.push_back(number);
        })) {}

  void Start() { window_->Start(); }
  // Receives a requested frame of BYTES.
  void Receive(size_t bytes = kFrameBytes) {
    ASSERT_GT(request_count_, received_count_);
    ++received_count_;
    tokens_.push_back(window_->Hold(bytes));
    window_->Next();
  }
  // Processes the oldest held frame.
  void Process() { tokens_.pop_front(); }
  bool requests() const { return request_count_ > received_count_; }
  int held_count() const { return static_cast<int>(tokens_.size()); }
  void Drop() { window_.reset(); }

 private:
  int request_count_ = 0;
  int received_count_ = 0;
  std::shared_ptr<FrameWindow> window_;
  std::deque<std::shared_ptr<const void>> tokens_;
};

TEST(FrameBudgetTest, EveryStreamHoldsOneFrameWithoutSharedBytes) {
  FrameBudget budget;
  std::vector<int> requests;
  Stream a(budget, 0, requests), b(budget, 1, requests);
  for (Stream* stream : {&a, &b}) {
    stream->Start();
    stream->Receive();
    EXPECT_FALSE(stream->requests());
  }
  EXPECT_EQ(budget.held_bytes(), 2 * kFrameBytes);
  a.Process();
  EXPECT_TRUE(a.requests());
  EXPECT_FALSE(b.requests());
}

TEST(FrameBudgetTest, AStreamHoldsUpToItsLimitIfTheBudgetHasRoom) {
  FrameBudget budget;
  budget.Add(100 * kFrameBytes);
  std::vector<int> requests;
  Stream stream(budget, 0, requests);
  stream.Start();
  for (int i = 0; i < kFrames; ++i) stream.Receive();
  EXPECT_FALSE(stream.requests());
  stream.Process();
  EXPECT_TRUE(stream.requests());
}

TEST(FrameBudgetTest, StreamsShareTheirFurtherFramesInTheOrderInWhichTheyAsked) {
  FrameBudget budget;
  budget.Add(kFrameBytes);
  std::vector<int> requests;
  Stream a(budget, 0, requests), b(budget, 1, requests), c(budget, 2, requests);
  for (Stream* stream : {&a, &b, &c}) stream->Start();
  a.Receive();  // takes the shared bytes
  c.Receive();
  b.Receive();
  a.Receive();  // waits behind c and b
  EXPECT_THAT(requests, ElementsAre(0, 1, 2, 0));
  a.Process();
  EXPECT_THAT(requests, ElementsAre(0, 1, 2, 0, 2));
  c.Receive();
  c.Process();
  EXPECT_THAT(requests, ElementsAre(0, 1, 2, 0, 2, 1));
}

TEST(FrameBudgetTest, AStreamWithoutFramesDoesNotWaitForItsTurn) {
  FrameBudget budget;
  std::vector<int> requests;
  Stream a(budget, 0, requests), b(budget, 1, requests);
  a.Start();
  a.Receive();
  b.Start();
  b.Receive();
  a.Process();
  b.Process();
  EXPECT_TRUE(a.requests());
  EXPECT_TRUE(b.requests());
  // Both streams are still queued. Their turns change nothing, and the bytes stay free.
  budget.Add(kFrameBytes);
  a.Receive();
  EXPECT_TRUE(a.requests());
}

TEST(FrameBudgetTest, SmallFramesTakeOnlyTheirOwnBytes) {
  FrameBudget budget;
  budget.Add(kFrameBytes / 2);
  std::vector<int> requests;
  Stream stream(budget, 0, requests);
  stream.Start();
  for (int i = 0; i < kFrames; ++i) stream.Receive(1000);
  EXPECT_EQ(stream.held_count(), kFrames);
}

TEST(FrameBudgetTest, AFrameAboveTheUsualSizeTakesSharedBytes) {
  FrameBudget budget;
  budget.Add(kFrameBytes);
  std::vector<int> requests;
  Stream large(budget, 0, requests), other(budget, 1, requests);
  large.Start();
  large.Receive(2 * kFrameBytes);
  other.Start();
  other.Receive();
  EXPECT_FALSE(other.requests());
  large.Process();
  EXPECT_TRUE(other.requests());
}

TEST(FrameBudgetTest, AStreamThatEndsReturnsItsBytes) {
  FrameBudget budget;
  budget.Add(kFrameBytes);
  std::vector<int> requests;
  Stream gone(budget, 0, requests), waiting(budget, 1, requests), dropped(budget, 2, requests);
  for (Stream* stream : {&gone, &dropped, &waiting}) {
    stream->Start();
    stream->Receive();
  }
  EXPECT_TRUE(gone.requests());
  dropped.Drop();
  dropped.Process();
  gone.Drop();
  gone.Process();
  EXPECT_TRUE(waiting.requests());
  EXPECT_EQ(budget.held_bytes(), kFrameBytes);
}

// The peer of a stream in NoStreamStarvesUnderContention. Shared with the callback of its window.
struct Peer {
  absl::Mutex mu;
  int requested ABSL_GUARDED_BY(mu) = 0;

  bool Take() {
    absl::MutexLock lock(&mu);
    if (requested == 0) return false;
    --requested;
    return true;
  }
};

// Each thread receives and processes the frames of one stream. The budget has room for two further
// frames only.
TEST(FrameBudgetTest, NoStreamStarvesUnderContention) {
  FrameBudget budget;
  budget.Add(2 * kFrameBytes);
  std::atomic<int> received_count = 0;
  std::vector<std::thread> threads;
  for (int s = 0; s < 4; ++s) {
    threads.emplace_back([&budget, &received_count] {
      const auto peer = std::make_shared<Peer>();
      const auto window = std::make_shared<FrameWindow>(budget, kFrames, [peer] {
        absl::MutexLock lock(&peer->mu);
        ++peer->requested;
      });
      std::deque<std::shared_ptr<const void>> tokens;
      window->Start();
      for (int received = 0; received < 5000;) {
        if (peer->Take()) {
          ++received;
          ++received_count;
          tokens.push_back(window->Hold(kFrameBytes));
          window->Next();
        } else if (!tokens.empty()) {
          tokens.pop_front();
        }  // otherwise, another thread is about to request a frame
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(received_count, 20'000);
  EXPECT_EQ(budget.held_bytes(), 0);
}

}  // namespace
}  // namespace thinwire
