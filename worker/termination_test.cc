#include "worker/termination.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace thinwire {
namespace {

TEST(TerminationTest, SignalIsNoted) {
  Termination termination;
  EXPECT_FALSE(termination.requested());
  ASSERT_EQ(kill(getpid(), SIGTERM), 0);
  while (!termination.requested()) std::this_thread::yield();
}

TEST(TerminationDeathTest, SecondSignalEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Termination termination;
        kill(getpid(), SIGTERM);
        while (!termination.requested()) std::this_thread::yield();
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(128 + SIGTERM), "for the second time");
}

}  // namespace
}  // namespace thinwire
