#include "common/time/clock.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(ClockTest, TheSteadyClockNeverDecreases) {
  SteadyClock clock;
  const absl::Time first = clock.Now();
  EXPECT_GE(clock.Now(), first);
}

TEST(ClockTest, OnlyAdvanceMovesTheManualClock) {
  ManualClock clock;
  const absl::Time first = clock.Now();
  EXPECT_EQ(clock.Now(), first);
  clock.Advance(absl::Seconds(3));
  EXPECT_EQ(clock.Now() - first, absl::Seconds(3));
}

}  // namespace
}  // namespace thinwire
