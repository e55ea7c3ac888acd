#include "server/edge/control_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/time/clock.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ControlThreadTest : public testing::Test {
 protected:
  // Blocks until all work that was posted earlier has returned.
  void Flush() {
    absl::Notification flushed;
    thread_.Post([&flushed] { flushed.Notify(); });
    flushed.WaitForNotification();
  }

  ManualClock clock_;
  std::vector<absl::Duration> pauses_;
  ControlThread thread_{clock_, absl::Seconds(5),
                        [this](absl::Duration pause) { pauses_.push_back(pause); }};
};

TEST_F(ControlThreadTest, WorkRunsInTheOrderOfThePosts) {
  std::vector<int> order;
  thread_.Post([&order] { order.push_back(1); });
  thread_.post()([&order] { order.push_back(2); });
  thread_.Post([&order] { order.push_back(3); });
  Flush();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(ControlThreadTest, ASuspensionIsReportedBeforeTheNextWork) {
  thread_.StartTicking(absl::Hours(1), [] {});
  Flush();
  clock_.Advance(absl::Seconds(5));
  Flush();
  EXPECT_THAT(pauses_, IsEmpty()) << "not longer than the limit";
  clock_.Advance(absl::Seconds(6));
  std::vector<absl::Duration> before;
  thread_.Post([&] { before = pauses_; });
  Flush();
  EXPECT_THAT(before, ElementsAre(absl::Seconds(6)));
  EXPECT_THAT(pauses_, ElementsAre(absl::Seconds(6))) << "reported once";
}

TEST_F(ControlThreadTest, AThreadThatDoesNotTickReportsNoSuspension) {
  Flush();
  clock_.Advance(absl::Hours(1));
  Flush();
  EXPECT_THAT(pauses_, IsEmpty());
}

TEST_F(ControlThreadTest, TicksRepeat) {
  absl::Notification third;
  int count = 0;
  thread_.StartTicking(absl::Milliseconds(1), [&] {
    if (++count == 3) third.Notify();
  });
  third.WaitForNotification();
  thread_.Stop();
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace thinwire
