#include "server/job/control_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/thread_executor.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ControlExecutorTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::vector<absl::Duration> pauses_;
  Threads threads_;
  ControlExecutor executor_{threads_.Make(), clock_, absl::Seconds(5),
                            [this](absl::Duration pause) { pauses_.push_back(pause); }};
};

TEST_F(ControlExecutorTest, ASuspensionIsReportedBeforeTheNextTask) {
  executor_.StartTicking(absl::Hours(1), [] {});
  executor_.Run([] {});
  clock_.Advance(absl::Seconds(5));
  executor_.Run([] {});
  EXPECT_THAT(pauses_, IsEmpty()) << "not longer than the limit";
  clock_.Advance(absl::Seconds(6));
  std::vector<absl::Duration> before;
  executor_.Post([&] { before = pauses_; });
  executor_.Run([] {});
  EXPECT_THAT(before, ElementsAre(absl::Seconds(6)));
  EXPECT_THAT(pauses_, ElementsAre(absl::Seconds(6))) << "reported once";
}

TEST_F(ControlExecutorTest, AnExecutorThatDoesNotTickReportsNoSuspension) {
  executor_.Run([] {});
  clock_.Advance(absl::Hours(1));
  executor_.Run([] {});
  EXPECT_THAT(pauses_, IsEmpty());
}

TEST_F(ControlExecutorTest, TicksRepeat) {
  absl::Notification third;
  int count = 0;
  executor_.StartTicking(absl::Milliseconds(1), [&] {
    if (++count == 3) third.Notify();
  });
  third.WaitForNotification();
  executor_.Stop();
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace thinwire
