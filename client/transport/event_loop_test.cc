#include "client/transport/event_loop.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"

namespace thinwire::client {
namespace {

TEST(EventLoopTest, RunsTasksInTheOrderTheyWerePosted) {
  SteadyClock clock;
  EventLoop loop(clock);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) loop.Post([&order, i] { order.push_back(i); });
  loop.Run([] {});
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(EventLoopTest, RunsTimedTasksByTheirTime) {
  SteadyClock clock;
  EventLoop loop(clock);
  std::vector<int> order;
  absl::Notification last;
  const absl::Time now = clock.Now();
  loop.PostAt(now + absl::Milliseconds(30), [&] {
    order.push_back(3);
    last.Notify();
  });
  loop.PostAt(now + absl::Milliseconds(10), [&] { order.push_back(1); });
  loop.PostAt(now + absl::Milliseconds(20), [&] { order.push_back(2); });
  last.WaitForNotification();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(EventLoopTest, StopDropsWaitingTasks) {
  SteadyClock clock;
  EventLoop loop(clock);
  bool ran = false;
  loop.PostAt(clock.Now() + absl::Hours(1), [&] { ran = true; });
  loop.Stop();
  loop.Post([&] { ran = true; });
  loop.Run([&] { ran = true; });
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace thinwire::client
