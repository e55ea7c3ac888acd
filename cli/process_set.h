// ProcessSet: the children of a run by name, and everything that can happen to them as one row of
// events.
//
//   line      a line of a child's standard output
//   log       a line of its standard error, which is also kept in a file
//   exit      its end; nothing comes from it afterwards
//   signal    this program got SIGINT or SIGTERM
#ifndef THINWIRE_CLI_PROCESS_SET_H_
#define THINWIRE_CLI_PROCESS_SET_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/line_splitter.h"
#include "cli/process.h"
#include "cli/signals.h"

namespace thinwire {

struct ProcessEvent {
  enum class Kind { kLine, kLog, kExit, kSignal };

  Kind kind = Kind::kLine;
  std::string name;  // of the child
  std::string text;  // kLine, kLog
  ExitStatus exit;   // kExit
  int signal = 0;    // kSignal

  bool operator==(const ProcessEvent&) const = default;
};

// Not thread-safe. Kills what still runs when it goes.
class ProcessSet {
 public:
  // So many of a child's last log lines are kept in memory.
  static constexpr size_t kTailLines = 20;

  // SIGNALS outlives the set. Each child's log goes to LOG_DIR/NAME.log.
  ProcessSet(Signals& signals, std::string log_dir);
  ~ProcessSet();

  // REQUIRES: no child has NAME. Errors: those of Process::Start.
  absl::Status Start(const std::string& name, const std::vector<std::string>& arguments);

  // What happened, as soon as anything did; nothing after TIMEOUT.
  std::vector<ProcessEvent> Wait(absl::Duration timeout);

  void Signal(const std::string& name, int number);
  void SignalAll(int number);
  bool running(const std::string& name) const;
  size_t running_count() const { return children_.size(); }
  // The last lines of a child's log, also after its end.
  std::vector<std::string> Tail(const std::string& name) const;

 private:
  struct Child {
    std::unique_ptr<Process> process;
    LineSplitter output;
    LineSplitter errors;
    bool output_open = true;
    bool errors_open = true;
  };

  void ReadOutput(const std::string& name, Child& child, std::vector<ProcessEvent>& events);
  void ReadErrors(const std::string& name, Child& child, std::vector<ProcessEvent>& events);
  void Reap(std::vector<ProcessEvent>& events);
  void KeepLog(const std::string& name, const std::string& line);

  Signals& signals_;
  const std::string log_dir_;
  std::map<std::string, Child> children_;  // that have not ended
  std::map<std::string, std::deque<std::string>> tails_;
};

// Whether a person should see this line of a log at once: a warning or an error, as glog or a plain
// program writes it.
bool IsComplaint(const std::string& log_line);

}  // namespace thinwire

#endif  // THINWIRE_CLI_PROCESS_SET_H_
