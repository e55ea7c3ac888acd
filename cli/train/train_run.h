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
// Workers that an operator has removed end in order and are not started again. With a `grow_to` in
// the setting, the run itself raises the number to the workers that the lead wishes for, at most to
// `grow_to`. It does so once for each larger wish, so that an operator may still reduce the number.
// An added worker that cannot be started is a problem, but the run goes on.
//
// If the setting names a file for the trained model, a run that succeeds without a written model is
// a failure.
//
// Nothing is started again after a signal, a lost server or divergence. If a worker reports that
// its loss is not finite and left the job, the run stops the other workers. SIGINT, SIGTERM or
// SIGHUP stops the workers, then the servers; a process that does not stop in time is killed
// (run_state.h).
#ifndef THINWIRE_CLI_TRAIN_TRAIN_RUN_H_
#define THINWIRE_CLI_TRAIN_TRAIN_RUN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/rpc/server_calls.h"
#include "cli/terminal/console.h"
#include "cli/train/report.h"
#include "cli/train/restarts.h"
#include "cli/train/run_display.h"
#include "cli/train/run_outcome.h"
#include "cli/train/run_problems.h"
#include "cli/train/run_processes.h"
#include "cli/train/run_state.h"
#include "cli/train/train_setting.h"
#include "common/base/exit_code.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

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
  // Waits until the servers from FIRST listen, or one of them is lost.
  void AwaitServers(ServerId first);
  // Copies the trained model to this machine if it is on another one. Adds a problem if the run
  // succeeded but there is no model file.
  void ObtainModel();
  // Returns the time that the servers need to send the masters of STATUSES below --uplink.
  absl::Duration MastersTime(const std::vector<StatusReply>& statuses) const;
  // Requests the servers' counters and the checksum of the parameters, and stores both in result().
  void AskServers();
  // Makes the channels for calls to the servers.
  void Connect();

  // Handles events of the processes until done() returns true or until `deadline` has passed.
  template <typename Done>
  void Watch(Done done, absl::Time deadline);
  void Handle(const ProcessEvent& event);
  void HandleLine(const ProcessEvent& event);
  // Shows warnings and errors, or every line if the setting says so.
  void HandleLog(const ProcessEvent& event);
  void HandleWorkerEvent(const WorkerEvent& event);
  // Stores in result() the step from which a resumed run continues. JOINED is of the first worker.
  void HandleResume(const WorkerEvent::Joined& joined);
  // Warns if EVENT is the first that reports divergence. Stops the workers if its worker left the
  // job early because of it.
  void HandleDivergence(const WorkerEvent& event);
  void HandleSignal(int number);
  void HandleExit(const ProcessEvent& exit);
  // Handle the end of a process that is not started again.
  void HandleLoss(const ProcessEvent& exit);
  void HandleLoss(ServerId server, const ProcessEvent& exit);
  void HandleLoss(WorkerId worker, const ProcessEvent& exit);

  bool MayRestart(const ProcessEvent& exit) const;
  // Starts the processes whose restart is due. If the run is ending, their restarts are dropped.
  void StartDueProcesses();
  void Restart(const ProcessEvent& exit);
  // Returns whether an operator may add workers now.
  bool CanGrow() const { return calls_ != nullptr && !state_.ending() && running_workers() > 0; }
  // Asks the lead about once a second for the number of workers that the operator wants, and starts
  // the added workers.
  void StartAddedWorkers();
  // Raises this number to the wish of the lead, whose latest status is LEAD.
  void RaiseWorkers(const StatusReply& lead);

  // Returns a text such as "was killed by signal 9" or "ended with exit code 69: no such folder".
  std::string EndOf(const ProcessEvent& exit) const;
  // Returns the number of workers that run or are going to be started again.
  uint32_t running_workers() const;
  ExitCode code() const { return ExitCodeOf(state_.stop_signal(), outcome_, result_.record); }

  const TrainSetting setting_;
  Console& console_;
  Clock& clock_;
  RunState state_;
  RunProcesses processes_;
  Restarts restarts_;
  RunDisplay display_;
  RunProblems problems_;
  TrainResult result_;
  RunOutcome outcome_;
  std::unique_ptr<ServerCalls> calls_;  // null until the servers listen
  uint32_t target_workers_;             // the number of workers that the operator wants
  absl::Time next_target_;              // the time of the next question for this number
  uint32_t raised_to_;                  // the largest wish of the lead that was handled
  bool warned_of_divergence_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_TRAIN_RUN_H_
