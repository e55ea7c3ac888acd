#include "cli/process/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace thinwire {
namespace {

std::string ReadAll(int fd) {
  std::string all;
  char buffer[256];
  while (true) {
    pollfd wait{fd, POLLIN, 0};
    poll(&wait, 1, -1);
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count <= 0) return all;
    all.append(buffer, static_cast<size_t>(count));
  }
}

std::unique_ptr<Process> Shell(const std::string& script) {
  auto process = Process::Start({"/bin/sh", "-c", script});
  EXPECT_TRUE(process.ok()) << process.status();
  return std::move(*process);
}

// Blocks until the process ends, and returns its exit status.
ExitStatus EndOf(Process& process) {
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(process.pid()), &ended, WEXITED | WNOWAIT);
  return *process.Poll();
}

TEST(ProcessTest, OutputAndErrorsAreSeparate) {
  auto process = Shell("echo out; echo err >&2; cat; exit 3");
  EXPECT_EQ(ReadAll(process->output_fd()), "out\n");
  EXPECT_EQ(ReadAll(process->error_fd()), "err\n");
  EXPECT_EQ(EndOf(*process), (ExitStatus{.code = 3}));
  EXPECT_EQ(EndOf(*process).ToString(), "exit code 3");
}

TEST(ProcessTest, ASignalReachesTheDescendantsOfTheProcess) {
  auto process = Shell("sleep 1000 & echo ready; wait");
  pollfd wait{process->output_fd(), POLLIN, 0};
  poll(&wait, 1, -1);
  EXPECT_FALSE(process->Poll());
  process->Signal(SIGKILL);
  // The process's descendant `sleep` also holds the output pipe, so ReadAll() returns only when
  // both have ended.
  EXPECT_EQ(ReadAll(process->output_fd()), "ready\n");
  EXPECT_EQ(EndOf(*process).ToString(), "killed by signal 9 (Killed)");
}

TEST(ProcessTest, ASignalCanBeALineOnTheInput) {
  auto process = Process::Start(
      {"/bin/sh", "-c", "trap '' TERM; echo ready; read -r line; echo got $line; read -r line"},
      SignalPath::kInput);
  ASSERT_TRUE(process.ok()) << process.status();
  pollfd wait{(*process)->output_fd(), POLLIN, 0};
  poll(&wait, 1, -1);
  (*process)->Signal(SIGTERM);
  char buffer[64];
  EXPECT_EQ(read((*process)->output_fd(), buffer, 6), 6);
  poll(&wait, 1, -1);
  const ssize_t count = read((*process)->output_fd(), buffer, sizeof(buffer));
  EXPECT_EQ(std::string(buffer, static_cast<size_t>(std::max<ssize_t>(0, count))), "got TERM\n");
  (*process)->Signal(SIGKILL);
  EXPECT_EQ(EndOf(**process), (ExitStatus{.code = 0, .signal = SIGKILL}));
}

TEST(ProcessTest, ItHasItsOwnProcessGroup) {
  auto process = Shell("cat");
  // `cat` ends at once because its standard input is empty, so the process may no longer exist when
  // getpgid() is called.
  EXPECT_TRUE(getpgid(process->pid()) == process->pid() || process->Poll().has_value());
}

TEST(ProcessTest, AMissingProgramIsAnErrorThatNamesIt) {
  const auto process = Process::Start({"/nowhere/server"});
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(process.status().message()),
              testing::HasSubstr("/nowhere/server: cannot be run"));
}

TEST(ProcessTest, TheChildDoesNotInheritBlockedSignals) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);
  auto process = Shell("echo ready; exec sleep 1000");
  pollfd wait{process->output_fd(), POLLIN, 0};
  poll(&wait, 1, -1);
  process->Signal(SIGTERM);
  EXPECT_EQ(EndOf(*process).signal, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

TEST(ProcessTest, TheChildOfAKilledParentIsKilled) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    auto process = Process::Start({"/bin/sleep", "1000"});
    const pid_t child = (*process)->pid();
    (void)!write(told[1], &child, sizeof(child));
    kill(getpid(), SIGKILL);
  }
  pid_t child = 0;
  ASSERT_EQ(read(told[0], &child, sizeof(child)), static_cast<ssize_t>(sizeof(child)));
  waitpid(parent, nullptr, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);  // possible because the test is a subreaper
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

}  // namespace
}  // namespace thinwire
