#include "common/process_setup.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace thinwire {

void FillStandardFiles() {
  int file = 0;
  while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDONLY);
  if (file >= 0) close(file);
}

void IgnoreBrokenPipes() { signal(SIGPIPE, SIG_IGN); }

std::vector<int> StopSignals() {
  std::vector<int> signals = {SIGINT, SIGTERM};
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    signals.push_back(SIGHUP);
  }
  return signals;
}

}  // namespace thinwire
