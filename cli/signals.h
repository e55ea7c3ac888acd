// Signals: SIGINT, SIGTERM and SIGCHLD as a file that a poll waits for, instead of a handler that
// interrupts.
#ifndef THINWIRE_CLI_SIGNALS_H_
#define THINWIRE_CLI_SIGNALS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// Not thread-safe.
class Signals {
 public:
  // Blocks the three, and ignores SIGPIPE, for this thread and those it starts later; so it is made
  // first of all.
  static absl::StatusOr<std::unique_ptr<Signals>> Block();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // Those that came since the last call; does not wait.
  std::vector<int> Take();

 private:
  explicit Signals(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_SIGNALS_H_
