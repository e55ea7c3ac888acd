// ProcessSet runs the child processes of a training run and reports everything that happens to
// them, and to this process, as one sequence of events:
//
//   line      a line of a child's standard output
//   log       a line of a child's standard error, which is also appended to a file
//   exit      the end of a child; no event of this child follows
//   signal    this process received SIGINT or SIGTERM
#ifndef THINWIRE_CLI_PROCESS_SET_H_
#define THINWIRE_CLI_PROCESS_SET_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/process.h"

namespace thinwire {

// Signals receives SIGINT, SIGTERM and SIGCHLD through a file descriptor that poll() can wait for,
// instead of through an interrupting handler. Not thread-safe.
class Signals {
 public:
  // Blocks SIGINT, SIGTERM and SIGCHLD and ignores SIGPIPE, for this thread and the threads that it
  // starts later. Call it before starting any thread. Errors: the system's.
  static absl::StatusOr<std::unique_ptr<Signals>> Block();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // Returns the signals received since the last call. Does not block.
  std::vector<int> Take();

 private:
  explicit Signals(int fd) : fd_(fd) {}

  const int fd_;
};

// LineSplitter splits the bytes of a pipe into lines. Not thread-safe.
class LineSplitter {
 public:
  // Longer lines are split, so that a child cannot exhaust its parent's memory.
  static constexpr size_t kMaxLineBytes = 1 << 16;

  // Returns the lines that end within `bytes`, without their newlines.
  std::vector<std::string> Take(std::string_view bytes);
  // Returns the last, unterminated line, if there is one. Call it at the end of the pipe.
  std::vector<std::string> TakeUnterminated();

 private:
  std::string line_;
};

struct ProcessEvent {
  enum class Kind { kLine, kLog, kExit, kSignal };

  Kind kind = Kind::kLine;
  std::string name;  // the child's; empty for kSignal
  std::string text;  // kLine, kLog
  ExitStatus exit;   // kExit
  int signal = 0;    // kSignal

  bool operator==(const ProcessEvent&) const = default;
};

// Not thread-safe. The destructor kills the running children.
class ProcessSet {
 public:
  // The number of log lines per child that Tail() returns at most.
  static constexpr size_t kTailLines = 20;

  // `signals` must outlive the set. Each child's log is appended to LOG_DIR/NAME.log.
  ProcessSet(Signals& signals, std::string log_dir);
  ~ProcessSet();

  // Starts a child. REQUIRES: no running child has the name. Errors: those of Process::Start.
  absl::Status Start(const std::string& name, const std::vector<std::string>& arguments);

  // Blocks until at least one event happens and returns the events; returns none after `timeout`.
  std::vector<ProcessEvent> Wait(absl::Duration timeout);

  // Sends a signal to a child; does nothing if it is not running.
  void Signal(const std::string& name, int number);
  void SignalAll(int number);

  bool running(const std::string& name) const;
  size_t running_count() const { return children_.size(); }
  // Returns the last lines of a child's log, also after its end.
  std::vector<std::string> Tail(const std::string& name) const;

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
  // Removes the children that have ended.
  void Reap(std::vector<ProcessEvent>& events);
  void KeepLog(const std::string& name, const std::string& line);

  Signals& signals_;
  const std::string log_dir_;
  std::map<std::string, Child> children_;  // running
  std::map<std::string, std::deque<std::string>> tails_;
};

// Returns true for a log line with a warning or an error, in the format of glog or of a plain
// program.
bool IsWarningOrError(const std::string& log_line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_SET_H_
