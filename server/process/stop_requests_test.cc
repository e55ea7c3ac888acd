#include "server/process/stop_requests.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

namespace thinwire {
namespace {

TEST(StopRequestsTest, ASignalEndsTheProcessInOrder) {
  StopRequests requests;
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_FALSE(requests.WaitForRestart());
  EXPECT_TRUE(requests.failure().ok());
  EXPECT_EQ(requests.code(), ExitCode::kOk);
}

TEST(StopRequestsTest, TheEndAfterASignalMayHaveACodeOfItsOwn) {
  StopRequests requests(ExitCode::kPreempted);
  ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_FALSE(requests.WaitForRestart());
  EXPECT_EQ(requests.code(), ExitCode::kPreempted);
}

TEST(StopRequestsTest, ADrainedServerIsDone) {
  StopRequests requests(ExitCode::kPreempted);
  requests.Drain();
  EXPECT_FALSE(requests.WaitForRestart());
  EXPECT_EQ(requests.code(), ExitCode::kOk);
}

TEST(StopRequestsTest, ASecondSignalDoesNotKillTheServer) {
  StopRequests requests;
  for (int i = 0; i < 2; ++i) ASSERT_EQ(raise(SIGTERM), 0);
  EXPECT_FALSE(requests.WaitForRestart());
  ASSERT_EQ(raise(SIGINT), 0);
  EXPECT_FALSE(requests.WaitForRestart());
}

TEST(StopRequestsTest, AFailureOfAnotherThreadEndsTheProcessWithItsCode) {
  StopRequests requests;
  std::thread other(
      [&] { requests.Fail(absl::DataLossError("log: cannot be written"), ExitCode::kIo); });
  EXPECT_FALSE(requests.WaitForRestart());
  other.join();
  EXPECT_EQ(requests.failure(), absl::DataLossError("log: cannot be written"));
  EXPECT_EQ(requests.code(), ExitCode::kIo);
}

TEST(StopRequestsTest, AfterARestartTheNextRequestIsAwaited) {
  StopRequests requests;
  requests.Restart();
  EXPECT_TRUE(requests.WaitForRestart());
  requests.Restart();
  requests.Drain();
  EXPECT_TRUE(requests.WaitForRestart());
  EXPECT_FALSE(requests.WaitForRestart());
  EXPECT_EQ(requests.code(), ExitCode::kOk);
}

}  // namespace
}  // namespace thinwire
