// Process: a child that cannot outlive its parent. It has a process group of its own, so that a
// terminal's Ctrl-C reaches it only through its parent, and the kernel kills it when the thread
// that started it ends, however it ends.
//
// Its standard input is empty; its output and its errors are pipes that never block the reader.
#ifndef THINWIRE_CLI_PROCESS_H_
#define THINWIRE_CLI_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// How a process ended.
struct ExitStatus {
  int code = 0;    // of a process that ended by itself
  int signal = 0;  // that killed it, or 0

  bool ok() const { return code == 0 && signal == 0; }
  // "exit code 69", "killed by signal 9 (Killed)".
  std::string ToString() const;
  bool operator==(const ExitStatus&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ExitStatus& s) {
    return out << s.ToString();
  }
};

// Not thread-safe; the starting thread must live as long as the process.
class Process {
 public:
  // Runs ARGUMENTS, the first of which is the program's path. Errors: NotFound, PermissionDenied
  // and others of the system, with the program's name.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& arguments);
  // Kills what still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  int output_fd() const { return output_fd_; }
  int error_fd() const { return error_fd_; }

  // Sends a signal to the process and what it started; nothing once it has ended.
  void Signal(int number);
  // How it ended, if it has.
  std::optional<ExitStatus> Poll();

 private:
  Process(pid_t pid, int output_fd, int error_fd)
      : pid_(pid), output_fd_(output_fd), error_fd_(error_fd) {}

  const pid_t pid_;
  const int output_fd_;
  const int error_fd_;
  std::optional<ExitStatus> exit_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_H_
