// RunProcesses are the servers and workers of a training run, on this machine or over ssh on
// others, with the addresses on which the servers listen.
#ifndef THINWIRE_CLI_TRAIN_RUN_PROCESSES_H_
#define THINWIRE_CLI_TRAIN_RUN_PROCESSES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/train/run_state.h"
#include "cli/train/train_setting.h"
#include "common/base/ids.h"

namespace thinwire {

// Not thread-safe.
class RunProcesses {
 public:
  // All arguments must outlive the RunProcesses. The job file and the logs of the processes are
  // written to DIR.
  RunProcesses(const TrainSetting& setting, Signals& signals, const TempDir& dir);

  // Writes the file from which the processes on this machine read the job.
  absl::Status WriteJob();
  // Start a process. A server that has listened before listens on the same address again. REQUIRES:
  // no process of this name runs.
  absl::Status Start(ServerId server);
  absl::Status Start(WorkerId worker);

  // See ProcessSet::Wait.
  std::vector<ProcessEvent> Wait(absl::Duration timeout) { return processes_.Wait(timeout); }
  void Send(const RunSignal& signal);

  bool runs(WorkerId worker) const { return processes_.running(NameOf(worker)); }
  size_t running_count() const { return processes_.running_count(); }
  // Returns EXIT as text, with the last line of the process's log if this line is not shown yet.
  std::string ReasonOf(const ProcessEvent& exit) const;

  void SetListening(ServerId server, const std::string& address);
  void SetSilent(ServerId server) { listening_[server.value] = false; }
  // Returns the first server from FIRST that does not listen, or nullopt.
  std::optional<ServerId> FirstSilent(ServerId first) const;
  // By server number; "" until the server has listened.
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  // Starts the process NAME, which writes a trace if the setting says so.
  absl::Status StartHere(const std::string& name, std::vector<std::string> command);

  const TrainSetting& setting_;
  const TempDir& dir_;
  ProcessSet processes_;
  std::vector<std::string> addresses_;
  std::vector<bool> listening_;  // by server number
  uint32_t worker_count_ = 0;    // all workers that were started have a lower number
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_PROCESSES_H_
