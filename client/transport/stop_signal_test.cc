#include "client/transport/stop_signal.h"

#include <gtest/gtest.h>

#include <thread>

namespace thinwire::client {
namespace {

TEST(StopSignalTest, TheSignalEndsWaitsNowAndInTheFuture) {
  StopSignal stop;
  EXPECT_FALSE(stop.is_set());
  std::thread setter([&] { stop.Set(); });
  stop.Wait(absl::InfiniteDuration());
  EXPECT_TRUE(stop.is_set());
  EXPECT_FALSE(stop.WaitUntil([] { return false; }, absl::InfiniteDuration()));
  setter.join();
}

TEST(StopSignalTest, AnUpdateEndsTheWaitForItsCondition) {
  StopSignal stop;
  bool answered = false;
  std::thread answer([&] { stop.Update([&] { answered = true; }); });
  EXPECT_TRUE(stop.WaitUntil([&] { return answered; }, absl::InfiniteDuration()));
  EXPECT_FALSE(stop.is_set());
  answer.join();
}

TEST(StopSignalTest, AConditionThatHoldsIsReportedAlsoAfterTheSignal) {
  StopSignal stop;
  stop.Set();
  EXPECT_TRUE(stop.WaitUntil([] { return true; }, absl::InfiniteDuration()));
}

TEST(StopSignalTest, AWaitEndsAfterItsTimeout) {
  StopSignal stop;
  EXPECT_FALSE(stop.WaitUntil([] { return false; }, absl::Milliseconds(1)));
  EXPECT_FALSE(stop.is_set());
}

}  // namespace
}  // namespace thinwire::client
