// ProcessSet runs the child processes of a training run. It reports their output and their ends,
// and the signals that this process receives, as one sequence of events:
//
//   line      a line of a child's standard output
//   log       a line of a child's standard error, which is also appended to a file; it follows the
//             lines of the child's standard output that were written before it
//   exit      the end of a child; no event of this child follows
//   signal    this process received a stop signal (common/base/process_setup.h)
#ifndef THINWIRE_CLI_PROCESS_PROCESS_SET_H_
#define THINWIRE_CLI_PROCESS_PROCESS_SET_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/process/process.h"

namespace thinwire {

// Signals receives stop signals (common/base/process_setup.h) and SIGCHLD through a file descriptor
// instead of a signal handler, so that poll() can wait for signals. Not thread-safe.
class Signals {
 public:
  // Blocks these signals in the calling thread and in threads that it starts afterwards, and
  // ignores SIGPIPE. Must be called before any other thread starts.
  static absl::StatusOr<std::unique_ptr<Signals>> Block();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // Returns the signals received since the last call of Take(). Does not block.
  std::vector<int> Take();

 private:
  explicit Signals(int fd) : fd_(fd) {}

  const int fd_;
};

// LineSplitter splits the bytes of a pipe into lines. Not thread-safe.
class LineSplitter {
 public:
  // Maximum line length. Longer lines are split, so that a child cannot exhaust its parent's
  // memory.
  static constexpr size_t kMaxLineBytes = 1 << 16;

  // Appends `bytes` to the stored unterminated line. Returns all lines that are complete now,
  // without their newlines, and stores the remaining bytes.
  std::vector<std::string> Take(std::string_view bytes);
  // Returns the stored unterminated line, or an empty vector if nothing is stored. Must be called
  // at the end of the pipe.
  std::vector<std::string> TakeUnterminated();

 private:
  std::string line_;
};

struct ProcessEvent {
  enum class Kind { kLine, kLog, kExit, kSignal };

  Kind kind = Kind::kLine;
  std::string name;  // the child's name; empty for kSignal
  std::string text;  // the line of a kLine or kLog event
  ExitStatus exit;   // kExit only
  int signal = 0;    // kSignal only

  bool operator==(const ProcessEvent&) const = default;
};

// Not thread-safe. The destructor kills the running children.
class ProcessSet {
 public:
  // `signals` must outlive the ProcessSet. The standard error of each child is appended to the file
  // NAME.log in the folder `log_dir`, where NAME is the child's name.
  ProcessSet(Signals& signals, std::string log_dir);
  ~ProcessSet();

  // Starts a child. REQUIRES: no running child is named `name`. Errors: those of Process::Start.
  absl::Status Start(const std::string& name, const std::vector<std::string>& arguments,
                     SignalPath signal_path = SignalPath::kKernel);

  // Blocks until at least one event happens, and returns the events. May return an empty vector:
  // after `timeout`, or if Wait() was woken without an event.
  std::vector<ProcessEvent> Wait(absl::Duration timeout);

  // Sends a signal to a child. Does nothing if the child is not running.
  void Signal(const std::string& name, int number);
  void SignalAll(int number);

  bool running(const std::string& name) const;
  size_t running_count() const { return children_.size(); }
  // Returns the last line of a child's log that is not empty, also after the child has ended.
  // Returns "" if there is none. A new child does not have the line of an ended child of its name.
  std::string LastLogLine(const std::string& name) const;

 private:
  struct Pipe {
    LineSplitter splitter;
    bool open = true;
  };
  struct Child {
    std::unique_ptr<Process> process;
    Pipe output;
    Pipe errors;
  };

  void ReadPipes(const std::string& name, Child& child, std::vector<ProcessEvent>& events);
  // Removes the children that have ended and adds their kExit events to `events`.
  void Reap(std::vector<ProcessEvent>& events);
  void KeepLog(const std::string& name, const std::string& line);

  Signals& signals_;
  const std::string log_dir_;
  std::map<std::string, Child> children_;  // the running children by name
  std::map<std::string, std::string> last_log_lines_;
};

// Returns whether a log line is a warning or an error. Recognizes the format of glog and the usual
// formats of other programs.
bool IsWarningOrError(const std::string& log_line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_PROCESS_SET_H_
