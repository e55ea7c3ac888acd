// Daemons starts real servers, workers and `thinwire` runs for a test, on free ports and in a
// temporary folder. Every wait has a timeout; a timeout is a test failure that prints the last
// lines of all logs.
#ifndef THINWIRE_TESTS_PROCESSES_DAEMONS_H_
#define THINWIRE_TESTS_PROCESSES_DAEMONS_H_

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Exit status and output of a program that has ended.
struct ProcessResult {
  ExitStatus exit;
  std::string output;
  std::string log;
};

// Not thread-safe.
class Daemons {
 public:
  // The timeout of every wait. It is longer than any wait takes on a busy machine.
  static constexpr absl::Duration kTimeout = absl::Seconds(90);

  Daemons();

  const std::string& folder() const { return folder_->path(); }
  // Writes TEXT to a new file in the folder and returns its path.
  std::string Write(const std::string& name, std::string_view text);

  // Starts a server with FLAGS. JOB is the text of its job file. Returns the server's host:port, or
  // "" if the server ended before it listened.
  std::string StartServer(const std::string& name, std::string_view job,
                          const std::vector<std::string>& flags = {});
  // Starts the server of number SERVER as "server0", "server1", ..., at its element of ADDRESSES,
  // and writes the host:port there. Server 0 is started last, because it needs the addresses of the
  // others. Fails the test if the server ends before it listens.
  void StartServer(uint32_t server, std::string_view job, std::vector<std::string>& addresses,
                   std::vector<std::string> flags = {});
  void StartWorker(const std::string& name, std::string_view job,
                   const std::vector<std::string>& flags);
  // Starts any program of the build: "cli/thinwire", "server/server", "worker/worker".
  void Start(const std::string& name, const std::string& program,
             std::vector<std::string> arguments);
  void Signal(const std::string& name, int number);

  // Blocks until the program NAME prints an event for which MATCHES returns true, and returns the
  // event. Each wait consumes the events that it examines, so a later wait does not see them again.
  // If the program ends first or the timeout expires, returns nothing and fails the test.
  using EventMatcher = std::function<bool(const WorkerEvent&)>;
  std::optional<WorkerEvent> WaitForEvent(const std::string& name, const EventMatcher& matches);
  // Blocks until the log of the program NAME contains TEXT. If the program ends first or the
  // timeout expires, returns false and fails the test.
  bool WaitForLog(const std::string& name, std::string_view text);
  // Returns the log of the program NAME so far.
  const std::string& LogOf(const std::string& name) const { return records_.at(name).log; }
  // Blocks until the program NAME has ended.
  ProcessResult WaitForEnd(const std::string& name);
  // Starts PROGRAM and blocks until it has ended.
  ProcessResult Run(const std::string& program, std::vector<std::string> arguments);

  size_t running_count() const { return set_->running_count(); }

 private:
  struct Record {
    std::deque<std::string> unread;  // output lines that no wait has examined
    std::string output;
    std::string log;
    std::optional<ExitStatus> exit;
  };

  // Reads the output of all programs and notices their ends until DONE returns true or the timeout
  // expires. Returns false after a timeout.
  bool WaitUntil(const std::function<bool()>& done);
  // Fails the test with a message that contains PROBLEM and the last lines of all logs.
  void FailWithLogs(const std::string& problem) const;

  std::unique_ptr<TempDir> folder_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<ProcessSet> set_;
  std::map<std::string, Record> records_;
  int file_count_ = 0;
};

// Matchers for WaitForEvent. IsEvent matches the events of KIND. IsStep matches step events whose
// step is at least AT_LEAST.
Daemons::EventMatcher IsEvent(WorkerEvent::EventCase kind);
Daemons::EventMatcher IsStep(uint64_t at_least);

// Returns the report that `thinwire train` wrote to PATH. Fails the test if it is not a JSON
// object.
nlohmann::json ReadReport(const std::string& path);

// Returns the process of this machine whose command line contains all of WORDS, or 0 if there is
// none.
pid_t FindProcess(const std::vector<std::string>& words);

}  // namespace thinwire

#endif  // THINWIRE_TESTS_PROCESSES_DAEMONS_H_
