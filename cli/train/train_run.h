// TrainRun runs all servers and workers of a job, on this machine or over ssh on others, from the
// start of the first server to the end of the last server.
//
//   1. start the servers and wait until all listen
//   2. start the workers and wait until all have ended
//   3. ask the servers for their counters and the checksum of the parameters
//   4. stop the servers
//
//   process that ends   condition                                      effect
//   worker              a crash, and restarts are left                 started again
//   worker              otherwise                                      lost; the others continue
//   server              keeps state, has listened, restarts are left   started again, same address
//   server              otherwise                                      lost; the run ends
//
// If an operator raises the number of workers (`thinwire scale`), the run starts the added workers.
// Workers that an operator has removed end in order and are not started again.
//
// If the setting names a file for the trained model, a run that succeeds without a written model is
// a failure.
//
// Nothing is started again after a signal, a lost server or divergence. If a worker reports that
// its loss is not finite and left the job, the run stops the other workers. SIGINT, SIGTERM or
// SIGHUP stops the workers, then the servers; a process that does not stop within the grace period
// is killed. A second SIGINT or SIGTERM kills all processes at once.
#ifndef THINWIRE_CLI_TRAIN_TRAIN_RUN_H_
#define THINWIRE_CLI_TRAIN_TRAIN_RUN_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/hosts/ssh_hosts.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/rpc/server_calls.h"
#include "cli/terminal/console.h"
#include "cli/train/progress.h"
#include "cli/train/report.h"
#include "cli/train/run_summary.h"
#include "cli/train/train_admin.h"
#include "common/base/exit_code.h"
#include "common/time/clock.h"
#include "proto/grpc_credentials.h"
#include "proto/job.pb.h"

namespace thinwire {

// The ending of the trace files of a run's processes.
inline constexpr char kTraceEnding[] = ".trace";

struct TrainSetting {
  JobConfig config;   // CheckJob must accept this job
  Programs programs;  // unused with `hosts`
  // The machines that run the processes; must outlive the TrainRun; null: this machine.
  SshHosts* hosts = nullptr;
  // For calls to the servers; unset: plaintext. To be made after Signals::Block(), because gRPC
  // starts threads.
  std::optional<Credentials> credentials;
  bool show_logs = false;  // shows every line of the processes' logs, not only warnings and errors
  // The folder in which the servers and workers keep their state; empty: they keep none.
  std::string state_dir;
  bool resume = false;    // whether `state_dir` has the state of an earlier run, which continues
  uint32_t restarts = 0;  // the largest number of processes that are started again
  // The second and later restarts of a process are delayed.
  absl::Duration restart_delay = absl::Seconds(1);
  OutputFile output;
  // Show and write the figures of the run; must outlive the TrainRun; null: no admin port, no
  // TensorBoard files.
  TrainAdmin* admin = nullptr;
  RunSummary* summary = nullptr;
  bool trace =
      false;  // whether each process writes its trace, NAME.trace, to the folder of the logs
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

  const TrainResult& result() const { return result_; }

 private:
  // Starts all servers and waits until they listen: server 0 last, because it calls the others.
  absl::Status StartServers();
  absl::Status StartWorkers();
  absl::Status Start(ServerId server);
  absl::Status Start(WorkerId worker);
  // Waits until the servers from FIRST listen, or one of them is lost.
  void AwaitServers(uint32_t first);
  void AwaitWorkers();
  // Copies the trained model to this machine if it is on another one. Calls Fail() if the run
  // succeeded but there is no model file.
  void ObtainModel();
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
  // Shows warnings and errors, or every line if the setting says so.
  void HandleLog(const ProcessEvent& event);
  void HandleWorkerEvent(const WorkerEvent& event);
  // Stores in result() the step from which a resumed run continues. JOINED is of the first worker.
  void HandleResume(const WorkerEvent::Joined& joined);
  void HandleExit(const ProcessEvent& event);
  // Handles the end of a process that is not started again.
  void HandleLoss(const ProcessEvent& exit);
  void HandleSignal(int number);
  // Stops the workers if EVENT says that its worker left the job early because the run diverged.
  // Warns if EVENT is the first that reports divergence.
  void HandleDivergence(const WorkerEvent& event);
  bool MayRestart(const ProcessEvent& exit) const;
  // Starts the processes whose restart is due. If the run is ending, their restarts are dropped.
  void StartDueProcesses();
  // Asks the lead about once a second for the number of workers that the operator wants, and starts
  // the added workers.
  void StartAddedWorkers();
  void Restart(const ProcessEvent& exit);
  void ShowProgress();
  // Shows the run's record on the admin page and writes it for TensorBoard.
  void UpdateRecords();
  void UpdateSummary();
  // Starts the process NAME, which writes a trace if the setting says so.
  absl::Status Start(const std::string& name, std::vector<std::string> command);
  // Shows an error message as one sentence and adds it to TrainResult::problems.
  void Fail(const std::string& problem);
  // Returns the exit status of a process that reported no error, with the last line of its log if
  // this line is not shown yet.
  std::string ReasonOf(const ProcessEvent& exit) const;
  // Returns a text such as "was killed by signal 9" or "ended with exit code 69: no such folder".
  std::string EndOf(const ProcessEvent& exit) const;

  // WorkerOf returns 3 for "worker 3", and nullopt if `name` is not the name of a worker. ServerOf
  // does the same for servers.
  std::optional<WorkerId> WorkerOf(const std::string& name) const;
  std::optional<ServerId> ServerOf(const std::string& name) const;
  // Returns the number of workers that run or are going to be started again.
  uint32_t running_workers() const;
  bool keeps_state() const { return !setting_.state_dir.empty(); }
  // Returns true if the run is being stopped and therefore starts no process again.
  bool ending() const;

  struct DelayedRestart {
    absl::Time due;
    ProcessEvent exit;  // the end of the process
  };

  const TrainSetting setting_;
  const TempDir& dir_;
  Console& console_;
  Clock& clock_;
  ProcessSet processes_;
  TrainResult result_;
  Progress progress_;
  std::vector<std::string> addresses_;  // by server number; "" until the server prints its address
  std::vector<bool> listening_;         // by server number
  std::map<std::string, DelayedRestart> delayed_restarts_;  // by the name of the process
  std::unique_ptr<ServerCalls> calls_;
  std::vector<ExitStatus> failures_;        // exit statuses of failed processes
  std::set<std::string> reported_reasons_;  // errors of lost workers that were shown
  std::optional<absl::Time> kill_at_;       // the time at which to kill the remaining workers
  // After a server has failed: the time at which to stop the remaining workers.
  std::optional<absl::Time> stop_at_;
  absl::Time next_progress_;
  uint32_t target_workers_;  // the number of workers that the operator wants
  absl::Time next_target_;   // the time of the next question for this number
  absl::Time next_records_;  // the next call of UpdateRecords; infinite if it has nothing to do
  bool summary_failed_ = false;
  int signal_ = 0;  // the first stop signal that this process received, or 0
  bool stopping_servers_ = false;
  bool stopped_by_divergence_ = false;
  bool warned_of_divergence_ = false;
  bool gave_model_up_ = false;     // a worker was stopped while it could not write the model file
  bool model_is_missing_ = false;  // every worker has ended, but this machine has no model file
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_TRAIN_RUN_H_
