#include "common/time/stop_limit.h"

#include "absl/synchronization/notification.h"
#include "common/base/exit_code.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(StopLimitDeathTest, AProcessThatDoesNotEndNamesItsWorkAndExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const StopLimit limit(absl::Milliseconds(1), [] { return "2 Joins"; });
        absl::Notification never;
        never.WaitForNotification();
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::kSoftware)),
      "still waiting after 1ms \\(2 Joins\\): this process ends now");
}

TEST(StopLimitTest, AProcessThatEndsInTimeGoesOn) {
  bool named = false;
  {
    const StopLimit limit(absl::InfiniteDuration(), [&named] {
      named = true;
      return "";
    });
  }
  EXPECT_FALSE(named);
}

}  // namespace
}  // namespace thinwire
