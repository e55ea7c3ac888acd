#include "worker/termination.h"

#include <glog/logging.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace thinwire {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

Termination::Termination() {
  const sigset_t signals = Signals();
  PCHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  signals_ = signalfd(-1, &signals, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  PCHECK(signals_ >= 0 && end_ >= 0) << "no descriptor to hear signals with";
  thread_ = std::thread([this] { Run(); });
}

Termination::~Termination() {
  PCHECK(eventfd_write(end_, 1) == 0);
  thread_.join();
  close(signals_);
  close(end_);
}

void Termination::Run() {
  pollfd wakers[] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                     {.fd = end_, .events = POLLIN, .revents = 0}};
  while (true) {
    if (poll(wakers, 2, /*timeout=*/-1) < 0) {
      PCHECK(errno == EINTR);
      continue;
    }
    if (wakers[1].revents != 0) return;
    signalfd_siginfo signal;
    PCHECK(read(signals_, &signal, sizeof(signal)) == sizeof(signal));
    if (requested_.exchange(true)) {
      LOG(ERROR) << "signal " << signal.ssi_signo << " for the second time: ending at once";
      _exit(128 + static_cast<int>(signal.ssi_signo));
    }
    LOG(WARNING) << "signal " << signal.ssi_signo << ": leaving after this step";
  }
}

}  // namespace thinwire
