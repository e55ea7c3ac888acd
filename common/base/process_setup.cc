#include "common/base/process_setup.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"

namespace thinwire {

void FillStandardFiles() {
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return;
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    // gRPC's library opens a descriptor before main() begins, and marks it FD_CLOEXEC. An inherited
    // descriptor does not have this mark, because exec has kept it.
    const int marks = fcntl(file, F_GETFD);
    if (marks < 0 || (marks & FD_CLOEXEC) != 0) dup2(null, file);
  }
  if (null > STDERR_FILENO) close(null);
}

void IgnoreBrokenPipes() { signal(SIGPIPE, SIG_IGN); }

void SkipDeadlockSearch() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

std::vector<int> StopSignals() {
  std::vector<int> signals = {SIGINT, SIGTERM};
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    signals.push_back(SIGHUP);
  }
  return signals;
}

}  // namespace thinwire
