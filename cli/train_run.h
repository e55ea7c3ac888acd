// TrainRun runs all servers and workers of a job on this machine, from the start of the first
// server to the end of the last server.
//
//   1. start the servers and wait until all listen
//   2. start the workers and wait until all have ended
//   3. ask the servers for their counters and the checksum of the parameters
//   4. stop the servers
//
// If the setting names a file for the trained model, a run that succeeds without a written model is
// a failure.
//
// If a worker process fails, the run records the failure and the other workers continue. If a
// worker reports that its loss is not finite and left the job, the run stops the other workers. If a
// server process fails, the run ends after the workers have reported the failure. SIGINT or SIGTERM
// stops the workers, then the servers; a process that does not stop within the grace period is
// killed. A second signal kills all processes at once.
#ifndef THINWIRE_CLI_TRAIN_RUN_H_
#define THINWIRE_CLI_TRAIN_RUN_H_

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/console.h"
#include "cli/launch.h"
#include "cli/process_set.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/server_calls.h"
#include "cli/temp_dir.h"
#include "common/clock.h"
#include "common/exit_code.h"
#include "proto/job.pb.h"

namespace thinwire {

struct TrainSetting {
  JobConfig config;  // CheckJob must accept this job
  Programs programs;
  OutputFile output;
  absl::Duration start_timeout = absl::Seconds(60);  // time limit until all servers listen
  absl::Duration grace = absl::Seconds(10);          // time between SIGTERM and SIGKILL
};

// Not thread-safe. Run() can be called once.
class TrainRun {
 public:
  // All arguments except `setting` must outlive the TrainRun. The run writes the job file and the
  // logs of the processes to `dir`.
  TrainRun(const TrainSetting& setting, Signals& signals, const TempDir& dir, Console& console,
           Clock& clock);

  // Runs the job and blocks until all servers and workers have ended. Returns the exit code of
  // `thinwire train`.
  ExitCode Run();

  const RunResult& result() const { return result_; }

 private:
  // Starts all servers and waits until they listen: server 0 last, because it calls the others.
  absl::Status StartServers();
  absl::Status StartWorkers();
  // Waits until the servers from FIRST listen.
  void AwaitServers(uint32_t first);
  void AwaitWorkers();
  // Requests the servers' counters and the checksum of the parameters, and stores both in result().
  void AskServers();
  void StopServers();
  ExitCode Result() const;

  // Handles events of the processes until done() returns true or until `deadline`, if set, has
  // passed.
  template <typename Done>
  void Watch(Done done, std::optional<absl::Time> deadline);
  void Handle(const ProcessEvent& event);
  void HandleLine(const ProcessEvent& event);
  // Shows warnings and errors.
  void HandleLog(const ProcessEvent& event);
  void HandleWorkerEvent(const WorkerEvent& event);
  void HandleExit(const ProcessEvent& event);
  void HandleSignal(int number);
  // Stops the workers if EVENT says that its worker left the job early because the run diverged.
  // Warns if EVENT is the first that reports divergence.
  void HandleDivergence(const WorkerEvent& event);
  void ShowProgress();
  // Shows an error message as one sentence and adds it to RunResult::problems.
  void Fail(const std::string& problem);
  // Returns the exit status of a process that reported no error, with the last line of its log if
  // this line is not shown yet.
  std::string ReasonOf(const ProcessEvent& exit) const;

  // WorkerOf returns 3 for "worker 3", and nullopt if `name` is not the name of a worker. ServerOf
  // does the same for servers.
  std::optional<WorkerId> WorkerOf(const std::string& name) const;
  std::optional<ServerId> ServerOf(const std::string& name) const;
  uint32_t running_workers() const;

  const TrainSetting setting_;
  const TempDir& dir_;
  Console& console_;
  Clock& clock_;
  ProcessSet processes_;
  RunResult result_;
  Progress progress_;
  std::vector<std::string> addresses_;  // by server number; "" until the server prints its address
  std::unique_ptr<ServerCalls> calls_;
  std::vector<ExitStatus> failures_;        // exit statuses of failed processes
  std::set<std::string> reported_reasons_;  // errors of lost workers that were shown
  std::optional<absl::Time> kill_at_;       // the time at which to kill the remaining workers
  // After a server has failed: the time at which to stop the remaining workers.
  std::optional<absl::Time> stop_at_;
  absl::Time next_progress_;
  int signal_ = 0;  // SIGINT or SIGTERM if this process received it, else 0
  bool stopping_servers_ = false;
  bool stopped_by_divergence_ = false;
  bool warned_of_divergence_ = false;
  bool model_is_missing_ = false;  // every worker has ended, but none has written the model
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_H_
