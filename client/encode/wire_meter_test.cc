#include "client/encode/wire_meter.h"

#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "common/time/clock.h"

namespace thinwire::client {
namespace {

constexpr size_t kMebi = size_t{1} << 20;

class WireMeterTest : public testing::Test {
 protected:
  // Simulates a push of BYTES bytes that gets its verdict after TIME.
  void Push(size_t bytes, absl::Duration time) {
    meter_.Sent(bytes, clock_.Now());
    clock_.Advance(time);
    meter_.Judged(bytes, clock_.Now());
  }

  ManualClock clock_;
  WireMeter meter_;
};

TEST_F(WireMeterTest, ThereIsNoGoodputBeforeTheFirstLargeEnoughStep) {
  EXPECT_FALSE(meter_.EndStep().has_value());
  Push(WireMeter::kLeastBytes - 1, absl::Seconds(1));
  EXPECT_FALSE(meter_.EndStep().has_value());
}

TEST_F(WireMeterTest, GoodputIsBytesPerBusyTime) {
  Push(kMebi, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), kMebi);
}

TEST_F(WireMeterTest, TheTimeBetweenTwoBurstsDoesNotCount) {
  Push(kMebi, absl::Milliseconds(500));
  clock_.Advance(absl::Seconds(100));  // idle: every push already has its verdict
  Push(kMebi, absl::Milliseconds(500));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), 2 * kMebi);
}

TEST_F(WireMeterTest, OverlappingMessagesAreTimedTogether) {
  meter_.Sent(kMebi, clock_.Now());
  meter_.Sent(kMebi, clock_.Now());
  clock_.Advance(absl::Seconds(1));
  meter_.Judged(kMebi, clock_.Now());
  meter_.Sent(kMebi, clock_.Now());
  clock_.Advance(absl::Seconds(2));
  meter_.Judged(2 * kMebi, clock_.Now());
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), kMebi);
}

TEST_F(WireMeterTest, TheNewestSampleCountsHalf) {
  Push(kMebi, absl::Seconds(1));
  meter_.EndStep();
  Push(3 * kMebi, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), 2 * kMebi);
}

TEST_F(WireMeterTest, AStepBusyWithEncodingNeverLowersTheGoodput) {
  Push(4 * kMebi, absl::Seconds(1));
  meter_.EndStep();
  meter_.Encoded(absl::Milliseconds(600));
  Push(2 * kMebi, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), 4 * kMebi);
  meter_.Encoded(absl::Milliseconds(600));
  Push(8 * kMebi, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), 8 * kMebi);
}

TEST_F(WireMeterTest, AStepThatLostAStreamGivesNoSample) {
  Push(kMebi, absl::Seconds(1));
  meter_.EndStep();
  meter_.Sent(kMebi, clock_.Now());
  meter_.Lost();
  clock_.Advance(absl::Seconds(10));
  Push(kMebi, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), kMebi);
  Push(3 * kMebi, absl::Seconds(1));
  EXPECT_DOUBLE_EQ(*meter_.EndStep(), 2 * kMebi) << "the next step gives a sample";
}

}  // namespace
}  // namespace thinwire::client
