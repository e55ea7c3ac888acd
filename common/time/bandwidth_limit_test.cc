#include "common/time/bandwidth_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "common/time/thread_executor.h"
#include "common/time/virtual_time.h"

namespace thinwire {
namespace {

using testing::ElementsAre;

class BandwidthLimitTest : public testing::Test {
 protected:
  // Awaits a turn that spends BYTES and records its time in seconds.
  void Send(uint64_t bytes) {
    limit_.Await([this, bytes] {
      sent_.push_back(absl::ToDoubleSeconds(time_.elapsed()));
      limit_.Spend(bytes);
    });
  }
  void RunUntil(double seconds) {
    bool reached = false;
    time_.At(absl::Seconds(seconds), [&reached] { reached = true; });
    while (!reached) time_.RunNext();
  }

  VirtualTime time_;
  BandwidthLimit limit_{1000, time_.Make()};
  std::vector<double> sent_;
};

TEST_F(BandwidthLimitTest, AMessageWaitsUntilTheEarlierOnesArePaid) {
  Send(500);
  Send(2000);
  Send(100);
  EXPECT_THAT(sent_, ElementsAre()) << "no task runs within Await";
  RunUntil(10);
  EXPECT_THAT(sent_, ElementsAre(0, 0.5, 2.5));
}

TEST_F(BandwidthLimitTest, IdleTimeEarnsNoCredit) {
  RunUntil(100);
  Send(1000);
  Send(1000);
  Send(1000);
  RunUntil(110);
  EXPECT_THAT(sent_, ElementsAre(100, 101, 102));
}

TEST_F(BandwidthLimitTest, BytesThatArriveWhileATaskWaitsDelayIt) {
  limit_.Spend(1000);
  Send(1);
  RunUntil(0.5);
  limit_.Spend(2000);
  RunUntil(10);
  EXPECT_THAT(sent_, ElementsAre(3));
}

TEST_F(BandwidthLimitTest, ATaskMayAwaitTheNextTurn) {
  limit_.Await([this] {
    limit_.Spend(1000);
    Send(1000);
  });
  Send(3000);
  RunUntil(10);
  EXPECT_THAT(sent_, ElementsAre(1, 4)) << "behind the task that was waiting already";
}

TEST_F(BandwidthLimitTest, ALiftedLimitRunsAllTasksAtOnce) {
  Send(1'000'000);
  Send(1'000'000);
  Send(1'000'000);
  RunUntil(1);
  EXPECT_THAT(sent_, ElementsAre(0));
  limit_.Lift();
  RunUntil(2);
  EXPECT_THAT(sent_, ElementsAre(0, 1, 1));
  Send(1);
  RunUntil(5000);
  EXPECT_THAT(sent_, ElementsAre(0, 1, 1, 2)) << "each task runs once";
}

TEST(BandwidthLimit, TheBytesOfManyThreadsStayBelowTheRate) {
  Threads threads;
  constexpr double kRate = 1e6;
  constexpr int kMessages = 40;
  constexpr uint64_t kBytes = 5000;
  BandwidthLimit limit(kRate, threads.Make());
  absl::BlockingCounter left(kMessages);
  std::atomic<uint64_t> spent = 0;
  std::atomic<int> above = 0;
  const absl::Time start = threads.Now();
  std::vector<std::thread> senders;
  for (int t = 0; t < 4; ++t) {
    senders.emplace_back([&] {
      for (int i = 0; i < kMessages / 4; ++i) {
        limit.Await([&] {
          const double allowed = kRate * absl::ToDoubleSeconds(threads.Now() - start) + kBytes;
          if (static_cast<double>(spent += kBytes) > allowed) ++above;
          limit.Spend(kBytes);
          left.DecrementCount();
        });
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  left.Wait();
  EXPECT_EQ(spent, kMessages * kBytes);
  EXPECT_EQ(above, 0);
}

TEST(Bandwidth, HasALimitForEachPositiveRate) {
  VirtualTime time;
  const Bandwidth none(BandwidthRates(), time);
  EXPECT_EQ(none.up, nullptr);
  EXPECT_EQ(none.down, nullptr);
  const Bandwidth down({.down = 1}, time);
  EXPECT_EQ(down.up, nullptr);
  EXPECT_NE(down.down, nullptr);
}

}  // namespace
}  // namespace thinwire
