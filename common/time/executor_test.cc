// The contract of Executor, which every implementation must satisfy.
#include "common/time/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"
#include "common/time/thread_pool.h"
#include "common/time/virtual_time.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

enum class Kind { kThread, kPool, kVirtual };

class ExecutorTest : public testing::TestWithParam<Kind> {
 protected:
  bool has_threads() const { return GetParam() != Kind::kVirtual; }
  ExecutorFactory& factory() {
    switch (GetParam()) {
      case Kind::kThread:
        return threads_;
      case Kind::kPool:
        return pool_;
      case Kind::kVirtual:
        return time_;
    }
    return time_;
  }
  // Returns when a task has notified DONE.
  void Await(const absl::Notification& done) {
    if (has_threads()) return done.WaitForNotification();
    while (!done.HasBeenNotified()) time_.RunNext();
  }

  Threads threads_;
  ThreadPool pool_{3};
  VirtualTime time_;
  const std::unique_ptr<Executor> executor_ = factory().Make();
};

TEST_P(ExecutorTest, TasksRunInTheOrderOfThePosts) {
  std::vector<int> order;
  absl::Notification last;
  for (int i = 0; i < 1000; ++i) executor_->Post([&order, i] { order.push_back(i); });
  executor_->Post([&last] { last.Notify(); });
  Await(last);
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
}

TEST_P(ExecutorTest, TimedTasksRunByTheirTimeAndThenByTheOrderOfTheCalls) {
  std::vector<int> order;
  absl::Notification last;
  const absl::Time now = executor_->Now();
  executor_->PostAt(now + absl::Milliseconds(30), [&last] { last.Notify(); });
  executor_->PostAt(now + absl::Milliseconds(20), [&order] { order.push_back(2); });
  executor_->PostAt(now + absl::Milliseconds(10), [&order] { order.push_back(1); });
  executor_->PostAt(now + absl::Milliseconds(20), [&order] { order.push_back(3); });
  executor_->PostAt(now + absl::Milliseconds(20), [&order] { order.push_back(4); });
  Await(last);
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
}

TEST_P(ExecutorTest, ATimedTaskRunsAtItsTimeAndAtOnceIfItHasPassed) {
  const absl::Time at = executor_->Now() + absl::Milliseconds(5);
  absl::Time ran, ran_again;
  absl::Notification done;
  executor_->PostAt(at, [&] {
    ran = executor_->Now();
    executor_->PostAt(at - absl::Seconds(1), [&] {
      ran_again = executor_->Now();
      done.Notify();
    });
  });
  Await(done);
  EXPECT_GE(ran, at);
  EXPECT_GE(ran_again, ran);
}

TEST_P(ExecutorTest, ATaskCanPostTasks) {
  std::vector<int> order;
  absl::Notification last;
  absl::Notification posted;
  executor_->Post([&] {
    if (has_threads()) posted.WaitForNotification();
    order.push_back(1);
    executor_->Post([&] {
      order.push_back(3);
      executor_->PostAt(executor_->Now(), [&last] { last.Notify(); });
    });
  });
  executor_->Post([&order] { order.push_back(2); });
  posted.Notify();
  Await(last);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_P(ExecutorTest, ATaskCanOwnAnObjectThatCannotBeCopied) {
  absl::Notification done;
  int got = 0;
  executor_->Post([&, value = std::make_unique<int>(7)] {
    got = *value;
    done.Notify();
  });
  Await(done);
  EXPECT_EQ(got, 7);
}

TEST_P(ExecutorTest, TasksOfAnExecutorRunOneAtATime) {
  constexpr int kThreads = 4, kPosts = 2000;
  int count = 0;  // without a lock
  const std::unique_ptr<Executor> other = factory().Make();
  const auto post = [&] {
    for (int i = 0; i < kPosts; ++i) {
      executor_->Post([&count] { ++count; });
      other->Post([] {});
    }
  };
  if (has_threads()) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(post);
    for (std::thread& thread : threads) thread.join();
  } else {
    for (int i = 0; i < kThreads; ++i) post();
  }
  executor_->Finish();
  EXPECT_EQ(count, kThreads * kPosts);
}

TEST_P(ExecutorTest, RunReturnsAfterTheTaskAndThoseBeforeIt) {
  std::vector<int> order;
  executor_->Post([&order] { order.push_back(1); });
  executor_->Post([&order] { order.push_back(2); });
  executor_->PostAt(absl::InfiniteFuture(), [&order] { order.push_back(4); });
  executor_->Run([&order] { order.push_back(3); });
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_P(ExecutorTest, FinishRunsPostedTasksAndDropsTimedTasks) {
  std::vector<int> order;
  executor_->Post([&order] { order.push_back(1); });
  executor_->PostAt(executor_->Now() + absl::Hours(1), [&order] { order.push_back(4); });
  executor_->Post([&order, this] {
    order.push_back(2);
    executor_->Post([&order] { order.push_back(3); });
  });
  executor_->Finish();
  executor_->Post([&order] { order.push_back(4); });
  executor_->Finish();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_P(ExecutorTest, StopDestroysTasksWithoutRunningThem) {
  const auto owned = std::make_shared<int>();
  bool ran = false;
  absl::Notification started, stopping;
  std::thread stopper;
  if (has_threads()) {
    // Stop is called while a task runs.
    executor_->Post([&] {
      started.Notify();
      stopping.WaitForNotification();
    });
    started.WaitForNotification();
  }
  executor_->PostAt(executor_->Now() + absl::Hours(1), [&ran, owned] { ran = true; });
  executor_->Post([&ran, owned] { ran = true; });
  executor_->Post([&ran, owned] { ran = true; });
  EXPECT_EQ(owned.use_count(), 4);
  if (has_threads()) {
    stopper = std::thread([this] { executor_->Stop(); });
    // Only a stopped executor drops a task that is posted.
    std::weak_ptr<int> last;
    do {
      auto probe = std::make_shared<int>();
      last = probe;
      executor_->Post([probe = std::move(probe)] {});
    } while (!last.expired());
    stopping.Notify();
    stopper.join();
  }
  executor_->Stop();
  EXPECT_EQ(owned.use_count(), 1);
  executor_->Post([&ran, owned] { ran = true; });
  executor_->PostAt(executor_->Now(), [&ran, owned] { ran = true; });
  executor_->Run([&ran] { ran = true; });
  executor_->Finish();
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_FALSE(ran);
}

TEST_P(ExecutorTest, ADestroyedTaskMayPost) {
  int destroyed_count = 0;
  const auto posts = [&] {
    return std::shared_ptr<void>(nullptr, [&](void*) {
      ++destroyed_count;
      executor_->Post([] {});
    });
  };
  executor_->PostAt(absl::InfiniteFuture(), [object = posts()] {});
  executor_->Run([&] {
    executor_->Post([object = posts()] {});
    executor_->PostAt(absl::InfiniteFuture(), [object = posts()] {});
  });
  executor_->Stop();
  EXPECT_EQ(destroyed_count, 3);
}

TEST_P(ExecutorTest, StopLeavesTheTasksOfOtherExecutors) {
  std::vector<int> order;
  const std::unique_ptr<Executor> other = factory().Make();
  absl::Notification last;
  const absl::Time now = executor_->Now();
  other->PostAt(now + absl::Milliseconds(20), [&last] { last.Notify(); });
  executor_->PostAt(now + absl::Milliseconds(10), [&order] { order.push_back(2); });
  other->PostAt(now + absl::Milliseconds(10), [&order] { order.push_back(3); });
  other->Post([&order] { order.push_back(1); });
  executor_->Stop();
  Await(last);
  EXPECT_THAT(order, ElementsAre(1, 3));
}

TEST_P(ExecutorTest, TheDestructorStops) {
  const auto owned = std::make_shared<int>();
  std::unique_ptr<Executor> executor = factory().Make();
  executor->PostAt(absl::InfiniteFuture(), [owned] {});
  executor.reset();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(ExecutorTest, TheTimeNeverDecreases) {
  std::vector<absl::Time> times = {factory().Now()};
  absl::Notification last;
  const absl::Time begin = executor_->Now();
  const auto record = [&times, this] { times.push_back(executor_->Now()); };
  for (int i = 0; i < 100; ++i) {
    executor_->PostAt(begin + absl::Microseconds(i % 7 * 10), record);
    executor_->Run(record);
  }
  executor_->PostAt(begin + absl::Milliseconds(1), [&last] { last.Notify(); });
  Await(last);
  EXPECT_EQ(times.size(), 201u);
  EXPECT_TRUE(std::ranges::is_sorted(times));
}

std::string NameOf(const testing::TestParamInfo<Kind>& kind) {
  switch (kind.param) {
    case Kind::kThread:
      return "Thread";
    case Kind::kPool:
      return "Pool";
    case Kind::kVirtual:
      return "Virtual";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ExecutorTest,
                         testing::Values(Kind::kThread, Kind::kPool, Kind::kVirtual), NameOf);

TEST(ThreadExecutorTest, ATaskThatIsDueRunsBeforePostedTasks) {
  SteadyClock clock;
  ThreadExecutor executor(clock);
  std::vector<int> order;
  executor.Run([&] {
    executor.Post([&order] { order.push_back(2); });
    executor.PostAt(executor.Now(), [&order] { order.push_back(1); });
  });
  executor.Finish();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST(ThreadPoolTest, TasksOfTwoExecutorsRunAtTheSameTime) {
  ThreadPool pool(2);
  const std::unique_ptr<Executor> a = pool.Make(), b = pool.Make();
  absl::Notification a_runs, b_runs;
  a->Post([&] {
    a_runs.Notify();
    b_runs.WaitForNotification();
  });
  b->Post([&] {
    b_runs.Notify();
    a_runs.WaitForNotification();
  });
  a->Finish();
  b->Finish();
}

TEST(VirtualTimeTest, TheTimeIsThatOfTheRunningTask) {
  VirtualTime time;
  const std::unique_ptr<Executor> executor = time.Make();
  std::vector<absl::Duration> times;
  executor->PostAt(absl::UnixEpoch() + absl::Hours(2), [&] { times.push_back(time.elapsed()); });
  time.After(absl::Seconds(1), [&] {
    times.push_back(time.elapsed());
    time.At(absl::ZeroDuration(), [&] { times.push_back(time.elapsed()); });
  });
  while (!time.empty()) time.RunNext();
  EXPECT_THAT(times, ElementsAre(absl::Seconds(1), absl::Seconds(1), absl::Hours(2)));
  EXPECT_EQ(time.Now(), executor->Now());
}

TEST(VirtualProcessTest, ASuspendedProcessRunsItsTasksLaterInTheirOrder) {
  VirtualTime time;
  VirtualProcess process(time);
  const std::unique_ptr<Executor> a = process.Make();
  const std::unique_ptr<Executor> b = process.Make();
  const std::unique_ptr<Executor> other = time.Make();
  std::vector<std::pair<int, absl::Duration>> ran;
  const auto task = [&](int number) {
    return [&, number] { ran.emplace_back(number, time.elapsed()); };
  };
  a->Post(task(1));
  time.RunNext();
  a->PostAt(time.Now() + absl::Seconds(1), task(2));
  process.Suspend(absl::Seconds(3));
  b->Post(task(3));
  other->PostAt(time.Now() + absl::Seconds(2), task(4));
  a->PostAt(time.Now() + absl::Seconds(4), task(5));
  while (!time.empty()) time.RunNext();
  EXPECT_THAT(ran, ElementsAre(Pair(1, absl::ZeroDuration()), Pair(4, absl::Seconds(2)),
                               Pair(3, absl::Seconds(3)), Pair(2, absl::Seconds(3)),
                               Pair(5, absl::Seconds(4))));
  EXPECT_FALSE(process.is_suspended());
}

}  // namespace
}  // namespace thinwire
