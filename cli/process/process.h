// Process is a child process that cannot outlive its parent: the kernel kills the child when the
// thread that started the child ends, even if SIGKILL ends the parent. The child has its own
// process group, so Ctrl-C in a terminal does not reach the child unless the parent forwards the
// signal.
//
// The child's standard output and standard error are pipes with non-blocking read ends. Its
// standard input is empty, except with SignalPath::kInput.
#ifndef THINWIRE_CLI_PROCESS_PROCESS_H_
#define THINWIRE_CLI_PROCESS_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// The exit code of a process, or the signal that killed the process.
struct ExitStatus {
  int code = 0;    // the exit code; 0 if a signal killed the process
  int signal = 0;  // the signal that killed the process, or 0

  bool ok() const { return code == 0 && signal == 0; }
  // Returns a text such as "exit code 69" or "killed by signal 9 (Killed)".
  std::string ToString() const;
  bool operator==(const ExitStatus&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ExitStatus& s) {
    return out << s.ToString();
  }
};

// The way of a signal to the program that a process runs.
enum class SignalPath {
  kKernel,  // the process and its descendants receive the signal
  // The process reads the name of the signal, such as "TERM", as a line on its standard input, so
  // that a client of a remote shell can forward it. SIGKILL kills the process directly.
  kInput,
};

// Not thread-safe. The thread that calls Start() must live as long as the process.
class Process {
 public:
  // Starts a program. The first element of `arguments` is the program's path. Errors: NotFound,
  // PermissionDenied or another system error, with the path.
  static absl::StatusOr<std::unique_ptr<Process>> Start(
      const std::vector<std::string>& arguments, SignalPath signal_path = SignalPath::kKernel);
  // Kills the process and its descendants if the process is still running.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  int output_fd() const { return output_fd_; }
  int error_fd() const { return error_fd_; }

  // Sends a signal on the SignalPath of the process. Does nothing if Poll() has reported that the
  // process ended.
  void Signal(int number);
  // Returns the exit status of the process, or nullopt if the process is still running. Does not
  // block.
  std::optional<ExitStatus> Poll();

 private:
  Process(pid_t pid, int input_fd, int output_fd, int error_fd)
      : pid_(pid), input_fd_(input_fd), output_fd_(output_fd), error_fd_(error_fd) {}

  const pid_t pid_;
  const int input_fd_;  // -1 with SignalPath::kKernel
  const int output_fd_;
  const int error_fd_;
  std::optional<ExitStatus> exit_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_PROCESS_H_
