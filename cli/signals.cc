#include "cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<Signals>> Signals::Block() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, number);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return absl::InternalError("pthread_sigmask");
  signal(SIGPIPE, SIG_IGN);
  const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, "signalfd");
  return std::unique_ptr<Signals>(new Signals(fd));
}

Signals::~Signals() { close(fd_); }

std::vector<int> Signals::Take() {
  std::vector<int> numbers;
  signalfd_siginfo came;
  while (read(fd_, &came, sizeof(came)) == sizeof(came)) {
    numbers.push_back(static_cast<int>(came.ssi_signo));
  }
  return numbers;
}

}  // namespace thinwire
