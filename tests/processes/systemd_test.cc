// Tests what server and worker tell systemd (sd_notify), with real processes and a socket in place
// of systemd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/testing/notify_socket.h"
#include "tests/processes/daemons.h"

namespace thinwire {
namespace {

using testing::StartsWith;

constexpr char kJob[] =
    "optimization { learning_rate: 0.01 } task { model: softmax train_examples: 3000 "
    "test_examples: 100 batch_size: 10 epochs: 100 }";

class SystemdTest : public testing::Test {
 protected:
  ~SystemdTest() override { unsetenv("WATCHDOG_USEC"); }

  // Receives messages until one begins with TEXT, and returns it. Returns "" if none arrives.
  static std::string ReceiveUntil(NotifySocket& systemd, const std::string& text) {
    std::string message = systemd.Receive();
    while (!message.empty() && !message.starts_with(text)) message = systemd.Receive();
    return message;
  }

  Daemons daemons_;
};

TEST_F(SystemdTest, AServerIsReadyWhenItListensAndStoppingAfterSigterm) {
  NotifySocket systemd;
  const std::string address = daemons_.StartServer("server", kJob);
  EXPECT_EQ(systemd.Receive(), absl::StrCat("READY=1\nSTATUS=listening ", address));
  daemons_.Signal("server", SIGTERM);
  EXPECT_EQ(systemd.Receive(), "STOPPING=1");
  EXPECT_EQ(daemons_.WaitForEnd("server").exit, ExitStatus());
}

TEST_F(SystemdTest, AServerThatCannotListenIsNeverReady) {
  NotifySocket systemd;
  EXPECT_EQ(daemons_.StartServer("server", kJob, {"--listen", "192.0.2.1:7000", "--insecure"}), "");
  EXPECT_EQ(daemons_.WaitForEnd("server").exit, ExitStatus{.code = 69});
  EXPECT_EQ(systemd.Receive(absl::ZeroDuration()), "");
}

TEST_F(SystemdTest, ASuspendedServerDoesNotAnswerTheWatchdog) {
  NotifySocket systemd;
  setenv("WATCHDOG_USEC", "60000", 1);
  ASSERT_NE(daemons_.StartServer("server", kJob), "");
  EXPECT_THAT(systemd.Receive(), StartsWith("READY=1\n"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(systemd.Receive(), "WATCHDOG=1");
  daemons_.Signal("server", SIGSTOP);
  int late_count = 0;  // messages that the server sent before it stopped
  while (late_count < 20 && systemd.Receive(absl::Seconds(1)) != "") ++late_count;
  EXPECT_LT(late_count, 20);
  daemons_.Signal("server", SIGCONT);
  EXPECT_EQ(systemd.Receive(), "WATCHDOG=1");
  daemons_.Signal("server", SIGTERM);
  EXPECT_EQ(ReceiveUntil(systemd, "STOPPING=1"), "STOPPING=1");
  EXPECT_EQ(daemons_.WaitForEnd("server").exit, ExitStatus());
}

TEST_F(SystemdTest, AWorkerIsReadyWhenItHasJoinedAndStoppingAfterSigterm) {
  const std::string address = daemons_.StartServer("server", kJob);
  NotifySocket systemd;
  setenv("WATCHDOG_USEC", "600000", 1);
  daemons_.StartWorker("worker", kJob, {"--addresses", address, "--delay", "10ms"});
  EXPECT_EQ(ReceiveUntil(systemd, "READY=1"), "READY=1\nSTATUS=training");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ReceiveUntil(systemd, "WATCHDOG=1"), "WATCHDOG=1");
  daemons_.Signal("worker", SIGTERM);
  EXPECT_EQ(ReceiveUntil(systemd, "STOPPING=1"), "STOPPING=1");
  EXPECT_EQ(daemons_.WaitForEnd("worker").exit, ExitStatus{.code = 75});
}

TEST_F(SystemdTest, AWorkerSaysWhichServerItWaitsFor) {
  NotifySocket systemd;
  daemons_.StartWorker("worker", kJob, {"--addresses", "127.0.0.1:1"});
  EXPECT_THAT(systemd.Receive(), StartsWith("STATUS=waiting for server 0 (127.0.0.1:1)"));
  daemons_.Signal("worker", SIGTERM);
  EXPECT_EQ(ReceiveUntil(systemd, "STOPPING=1"), "STOPPING=1");
}

}  // namespace
}  // namespace thinwire
