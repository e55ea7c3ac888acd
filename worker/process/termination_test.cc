#include "worker/process/termination.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace thinwire {
namespace {

// OpenBLAS starts threads before main, so SIGTERM may arrive at a thread that is older than the
// Termination object.
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

TEST(TerminationTest, TheFirstSignalCallsTheCallback) {
  Termination termination;
  absl::Notification called;
  termination.SetCallback([&] { called.Notify(); });
  EXPECT_FALSE(called.HasBeenNotified());
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  called.WaitForNotification();
  EXPECT_TRUE(termination.requested());
}

TEST(TerminationTest, ACallbackThatIsSetAfterTheSignalIsCalledAtOnce) {
  Termination termination;
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  while (!termination.requested()) std::this_thread::yield();
  bool called = false;
  termination.SetCallback([&] { called = true; });
  EXPECT_TRUE(called);
}

TEST(TerminationTest, ARemovedCallbackIsNotCalled) {
  Termination termination;
  termination.SetCallback([] { ADD_FAILURE() << "removed"; });
  termination.SetCallback(nullptr);
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  while (!termination.requested()) std::this_thread::yield();
  termination.SetCallback(nullptr);  // the thread has handled the signal when this call returns
}

// A shell that ends and its terminal both send SIGHUP.
TEST(TerminationTest, ARepeatedHangupIsOneRequest) {
  Termination termination;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(kill(getpid(), SIGHUP), 0);
    EXPECT_TRUE(termination.WaitFor(absl::InfiniteDuration()));
  }
  termination.SetCallback(nullptr);  // the thread has handled the signals when this call returns
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
