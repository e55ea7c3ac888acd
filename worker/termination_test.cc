#include "worker/termination.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"

namespace thinwire {
namespace {

// Threads of OpenBLAS start before main and do not block the signal, so they may receive it.
TEST(TerminationTest, ASignalToAnyThreadIsARequest) {
  absl::Notification ended;
  std::thread earlier([&] { ended.WaitForNotification(); });
  const absl::Cleanup end = [&] {
    ended.Notify();
    earlier.join();
  };
  Termination termination;
  EXPECT_FALSE(termination.requested());
  ASSERT_EQ(pthread_kill(earlier.native_handle(), SIGTERM), 0);
  while (!termination.requested()) std::this_thread::yield();
}

TEST(TerminationDeathTest, ASecondSignalEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Termination termination;
        kill(getpid(), SIGTERM);
        while (!termination.requested()) std::this_thread::yield();
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(128 + SIGTERM), "received twice");
}

}  // namespace
}  // namespace thinwire
