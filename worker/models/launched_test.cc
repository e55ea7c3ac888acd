#include "worker/models/launched.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(LaunchedTest, TheCpuHasNothingToWaitFor) {
  EXPECT_EQ(WaitForLaunched(c10::Device(c10::kCPU)), nullptr);
}

// LibTorch says so by an exception, which Train turns into a status.
TEST(LaunchedTest, ADeviceThatLibTorchDoesNotHaveIsNotWaitedFor) {
  EXPECT_ANY_THROW(WaitForLaunched(c10::Device(c10::kXLA, 0)));
}

}  // namespace
}  // namespace thinwire
