// Daemons: real servers, workers and `thinwire` runs for a test, on free ports, with a folder of
// their own.
//
// Every wait ends: with what was waited for, or with a failure that shows the last lines of every
// log.
#ifndef THINWIRE_TESTS_DAEMONS_H_
#define THINWIRE_TESTS_DAEMONS_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cli/process_set.h"
#include "cli/temp_dir.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// What a program that ran to its end left.
struct Finished {
  ExitStatus exit;
  std::string output;
  std::string log;
};

// Not thread-safe.
class Daemons {
 public:
  // Longer than anything here takes on a busy machine; only a failure waits for it.
  static constexpr absl::Duration kPatience = absl::Seconds(90);

  Daemons();

  const std::string& folder() const { return folder_->path(); }
  // Writes TEXT to a new file of the folder and returns its path.
  std::string Write(const std::string& name, std::string_view text);

  // Starts a server with a ServerConfig and returns its host:port, or "" if it ended first.
  std::string StartServer(const std::string& name, std::string_view config);
  void StartWorker(const std::string& name, std::string_view config);
  // Starts any program of the build: "cli/thinwire", "server/server", "worker/worker".
  void Start(const std::string& name, const std::string& program,
             std::vector<std::string> arguments);
  void Signal(const std::string& name, int number);

  // The first event in NAME's output, from where the last wait for it stopped, for which WANTED
  // holds; nothing and a test failure if NAME ends or patience runs out first.
  using Wanted = std::function<bool(const WorkerEvent&)>;
  std::optional<WorkerEvent> WaitForEvent(const std::string& name, const Wanted& wanted);
  // Waits until NAME has ended.
  Finished WaitForEnd(const std::string& name);
  // All three at once.
  Finished Run(const std::string& program, std::vector<std::string> arguments);

  size_t running_count() const { return set_->running_count(); }

 private:
  struct Record {
    std::deque<std::string> unread;  // output lines no wait has seen
    std::string output;
    std::string log;
    std::optional<ExitStatus> exit;
  };

  // Takes in what happens until DONE or patience runs out; says whether DONE.
  bool Until(const std::function<bool()>& done);
  void Complain(const std::string& what) const;

  std::unique_ptr<TempDir> folder_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<ProcessSet> set_;
  std::map<std::string, Record> records_;
  int file_count_ = 0;
};

// WANTED for events of a kind, and for step events of at least a step.
Daemons::Wanted IsEvent(WorkerEvent::EventCase kind);
Daemons::Wanted IsStep(uint64_t at_least);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_DAEMONS_H_
