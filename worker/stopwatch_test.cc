#include "worker/stopwatch.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(StopwatchTest, CountsOnlyWhileItRuns) {
  ManualClock clock;
  Stopwatch watch(clock);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(watch.elapsed(), absl::ZeroDuration());
  watch.Start();
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(watch.elapsed(), absl::Seconds(2));
  watch.Stop();
  clock.Advance(absl::Seconds(30));
  EXPECT_EQ(watch.elapsed(), absl::Seconds(2));
  watch.Start();
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(watch.elapsed(), absl::Seconds(3));
}

}  // namespace
}  // namespace thinwire
