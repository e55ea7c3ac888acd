// With --config=tsan only: the sanitizer finds a race, and takes no access for one that Abseil's locks order.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace {

std::atomic<int> report_count = 0;

}  // namespace

// The sanitizer calls this function with each report.
extern "C" void __tsan_on_report(void*) { ++report_count; }
// The exit code is that of the tests, because their reports are wanted.
extern "C" const char* __tsan_default_options() { return "exitcode=0"; }

namespace thinwire {
namespace {

// Returns the number of reports while FIRST and SECOND run at the same time.
int ReportsOf(const std::function<void()>& first, const std::function<void()>& second) {
  const int before = report_count;
  std::atomic<int> ready = 0;
  const auto run = [&ready](const std::function<void()>& function) {
    // Relaxed, so that this wait orders nothing.
    ready.fetch_add(1, std::memory_order_relaxed);
    while (ready.load(std::memory_order_relaxed) < 2) {
    }
    function();
  };
  std::thread one(run, first);
  std::thread two(run, second);
  one.join();
  two.join();
  return report_count - before;
}

constexpr int kRounds = 1000;

// The values of the races are static: the sanitizer reports one race per address.

TEST(AbslMutexTest, AccessesWithoutALockAreARace) {
  static int value = 0;
  const auto add = [&] {
    for (int i = 0; i < kRounds; ++i) value = value + 1;
  };
  EXPECT_GT(ReportsOf(add, add), 0);
}

TEST(AbslMutexTest, AccessesUnderDifferentMutexesAreARace) {
  absl::Mutex one, two;
  static int value = 0;
  const auto add = [](absl::Mutex& mutex) {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      value = value + 1;
    }
  };
  EXPECT_GT(ReportsOf([&] { add(one); }, [&] { add(two); }), 0);
}

TEST(AbslMutexTest, AWriteUnderAReadersLockIsARace) {
  absl::Mutex mutex;
  static int value = 0;
  const auto add = [&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::ReaderMutexLock lock(&mutex);
      value = value + 1;
    }
  };
  EXPECT_GT(ReportsOf(add, add), 0);
}

TEST(AbslMutexTest, TwoOrdersOfTwoMutexesAreReported) {
  // Debian's Abseil itself ends the process at such an order.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  absl::Mutex one, two;
  const auto lock = [](absl::Mutex& first, absl::Mutex& second) {
    absl::MutexLock a(&first);
    absl::MutexLock b(&second);
  };
  std::thread([&] { lock(one, two); }).join();
  EXPECT_GT(ReportsOf([&] { lock(two, one); }, [] {}), 0);
}

TEST(AbslMutexTest, MutexOrdersAccesses) {
  absl::Mutex mutex;
  int value = 0;
  const auto add = [&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      value = value + 1;
    }
  };
  const auto try_to_add = [&] {
    for (int i = 0; i < kRounds;) {
      if (!mutex.TryLock()) continue;
      value = value + 1;
      ++i;
      mutex.Unlock();
    }
  };
  EXPECT_EQ(ReportsOf(add, try_to_add), 0);
  EXPECT_EQ(value, 2 * kRounds);
}

TEST(AbslMutexTest, ReadersAreOrderedWithWriters) {
  absl::Mutex mutex;
  int value = 0;
  int sum = 0;
  const auto write = [&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::WriterMutexLock lock(&mutex);
      value = i;
    }
  };
  const auto read = [&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::ReaderMutexLock lock(&mutex);
      sum += value;
      if (i % 2 == 0) continue;
      mutex.ReaderUnlock();
      while (!mutex.ReaderTryLock()) {
      }
      sum += value;
    }
  };
  EXPECT_EQ(ReportsOf(write, read), 0);
}

// WAIT(mutex, condition) returns when `condition` is true, with MUTEX locked.
void ExpectTurnsWithoutReports(
    const std::function<void(absl::Mutex&, const absl::Condition&)>& wait) {
  absl::Mutex mutex;
  int turn = 0;   // guarded by mutex
  int value = 0;  // of the thread whose turn it is
  const auto take_turns = [&](int self) {
    for (int i = 0; i < kRounds; ++i) {
      const auto is_mine = [&] { return turn % 2 == self; };
      wait(mutex, absl::Condition(&is_mine));
      value = value + 1;
      ++turn;
      mutex.Unlock();
    }
  };
  EXPECT_EQ(ReportsOf([&] { take_turns(0); }, [&] { take_turns(1); }), 0);
  EXPECT_EQ(value, 2 * kRounds);
}

TEST(AbslMutexTest, AwaitOrdersAccesses) {
  ExpectTurnsWithoutReports([](absl::Mutex& mutex, const absl::Condition& condition) {
    mutex.Lock();
    mutex.Await(condition);
  });
  ExpectTurnsWithoutReports([](absl::Mutex& mutex, const absl::Condition& condition) {
    mutex.Lock();
    while (!mutex.AwaitWithTimeout(condition, absl::Milliseconds(1))) {
    }
  });
  ExpectTurnsWithoutReports([](absl::Mutex& mutex, const absl::Condition& condition) {
    mutex.Lock();
    while (!mutex.AwaitWithDeadline(condition, absl::Now() + absl::Milliseconds(1))) {
    }
  });
}

TEST(AbslMutexTest, LockWhenOrdersAccesses) {
  ExpectTurnsWithoutReports(
      [](absl::Mutex& mutex, const absl::Condition& condition) { mutex.LockWhen(condition); });
  ExpectTurnsWithoutReports([](absl::Mutex& mutex, const absl::Condition& condition) {
    while (!mutex.LockWhenWithTimeout(condition, absl::Milliseconds(1))) mutex.Unlock();
  });
  ExpectTurnsWithoutReports([](absl::Mutex& mutex, const absl::Condition& condition) {
    while (!mutex.LockWhenWithDeadline(condition, absl::Now() + absl::Milliseconds(1))) {
      mutex.Unlock();
    }
  });
}

TEST(AbslMutexTest, CondVarOrdersAccesses) {
  absl::CondVar changed;
  absl::Mutex mutex;
  int turn = 0;
  int value = 0;
  const auto take_turns = [&](int self) {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      while (turn % 2 != self) {
        if (i % 2 == 0) {
          changed.Wait(&mutex);
        } else {
          changed.WaitWithTimeout(&mutex, absl::Milliseconds(1));
        }
      }
      value = value + 1;
      ++turn;
      changed.SignalAll();
    }
  };
  EXPECT_EQ(ReportsOf([&] { take_turns(0); }, [&] { take_turns(1); }), 0);
  EXPECT_EQ(value, 2 * kRounds);
}

TEST(AbslMutexTest, NotificationOrdersAccesses) {
  using Wait = std::function<void(const absl::Notification&)>;
  const Wait waits[] = {
      [](const absl::Notification& notification) { notification.WaitForNotification(); },
      [](const absl::Notification& notification) {
        while (!notification.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
        }
      },
      [](const absl::Notification& notification) {
        while (!notification.WaitForNotificationWithDeadline(absl::Now() + absl::Milliseconds(1))) {
        }
      },
      [](const absl::Notification& notification) {
        while (!notification.HasBeenNotified()) {
        }
      }};
  for (const Wait& wait : waits) {
    for (int i = 0; i < 20; ++i) {
      absl::Notification notification;
      int value = 0;
      const auto write = [&] {
        value = 1;
        notification.Notify();
      };
      const auto read = [&] {
        wait(notification);
        EXPECT_EQ(value, 1);
      };
      EXPECT_EQ(ReportsOf(write, read), 0);
    }
  }
}

TEST(AbslMutexTest, BlockingCounterOrdersAccesses) {
  const int before = report_count;
  absl::BlockingCounter counter(2);
  int values[2] = {};
  const auto write = [&](int i) {
    values[i] = 1;
    counter.DecrementCount();
  };
  std::thread waiting([&] {
    counter.Wait();
    EXPECT_EQ(values[0] + values[1], 2);
  });
  ReportsOf([&] { write(0); }, [&] { write(1); });
  waiting.join();
  EXPECT_EQ(report_count, before);
}

}  // namespace
}  // namespace thinwire
