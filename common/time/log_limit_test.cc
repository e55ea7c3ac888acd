#include "common/time/log_limit.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(LogLimitTest, ABurstIsLoggedAndThenOneLinePerInterval) {
  LogLimit limit(3, absl::Seconds(10));
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Next(now), "");
  for (int i = 0; i < 41; ++i) EXPECT_EQ(limit.Next(now), std::nullopt);
  now += absl::Seconds(9);
  EXPECT_EQ(limit.Next(now), std::nullopt);
  now += absl::Seconds(1);
  EXPECT_EQ(limit.Next(now), " (42 more like this)");
  EXPECT_EQ(limit.Next(now), std::nullopt);
  now += absl::Seconds(10);
  EXPECT_EQ(limit.Next(now), " (1 more like this)");
}

TEST(LogLimitTest, APauseAllowsABurstAgainButNoLongerOne) {
  LogLimit limit(2, absl::Seconds(10));
  absl::Time now = absl::UnixEpoch();
  int logged_count = 0;
  for (int i = 0; i < 5; ++i) logged_count += limit.Next(now).has_value() ? 1 : 0;
  EXPECT_EQ(logged_count, 2);
  now += absl::Hours(1);
  logged_count = 0;
  for (int i = 0; i < 5; ++i) logged_count += limit.Next(now).has_value() ? 1 : 0;
  EXPECT_EQ(logged_count, 2);
}

}  // namespace
}  // namespace thinwire
