#include "common/time/watchdog.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/testing/notify_socket.h"

namespace thinwire {
namespace {

class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() { unsetenv("WATCHDOG_PID"); }
  ~WatchdogTest() override { unsetenv("WATCHDOG_USEC"); }

  // A part of the process that counts the questions and does not answer.
  void Ask(Watchdog::Alive alive) {
    const absl::MutexLock lock(&mu_);
    ++question_count_;
    last_ = std::move(alive);
  }
  void WaitForQuestions(int count) {
    const absl::MutexLock lock(&mu_);
    const auto asked = [&] { return question_count_ >= count; };
    mu_.Await(absl::Condition(&asked));
  }

  NotifySocket systemd_;
  absl::Mutex mu_;
  int question_count_ = 0;
  Watchdog::Alive last_;
};

TEST_F(WatchdogTest, SystemdHearsOnlyAnswers) {
  setenv("WATCHDOG_USEC", "3000", 1);
  std::optional<Watchdog> watchdog([this](Watchdog::Alive alive) { Ask(std::move(alive)); });
  WaitForQuestions(4);
  EXPECT_EQ(systemd_.Receive(absl::ZeroDuration()), "");
  watchdog.reset();
  last_();
  EXPECT_EQ(systemd_.Receive(), "WATCHDOG=1");
  EXPECT_EQ(systemd_.Receive(absl::ZeroDuration()), "");
}

TEST_F(WatchdogTest, EachQuestionIsAskedAgain) {
  setenv("WATCHDOG_USEC", "30000", 1);
  const Watchdog watchdog([](const Watchdog::Alive& alive) { alive(); });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(systemd_.Receive(), "WATCHDOG=1");
}

TEST_F(WatchdogTest, AProcessThatSystemdDoesNotWatchIsNotAsked) {
  {
    const Watchdog watchdog([this](Watchdog::Alive alive) { Ask(std::move(alive)); });
  }
  setenv("WATCHDOG_USEC", "3000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  {
    const Watchdog watchdog([this](Watchdog::Alive alive) { Ask(std::move(alive)); });
  }
  EXPECT_EQ(question_count_, 0);
}

}  // namespace
}  // namespace thinwire
