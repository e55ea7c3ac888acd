// ScriptRun runs a Python program as the workers of a job on other machines, with the job's
// servers:
//
//   1. start the workers, and wait for the job that the program of worker 0 describes
//   2. start the servers with this job, and wait until all listen
//   3. tell the workers the addresses of the servers
//   4. wait until all workers have ended, and stop the servers
//
// Nothing is started again: the first process that fails ends the run, as `python3 -m
// thinwire.launch` does on one machine. SIGINT, SIGTERM or SIGHUP stops the workers, which may push
// their residuals (drain_seconds), and then the servers. Those that do not stop within the grace
// period are killed. A second SIGINT or SIGTERM kills them at once.
#ifndef THINWIRE_CLI_LAUNCH_SCRIPT_RUN_H_
#define THINWIRE_CLI_LAUNCH_SCRIPT_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/hosts/ssh_hosts.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"
#include "common/base/ids.h"
#include "common/time/clock.h"

namespace thinwire {

struct ScriptRunSetting {
  uint32_t servers = 1;
  uint32_t workers = 1;
  std::string certified_job;  // the name of the job in the certificates; empty: there are none
  bool show_logs = false;     // shows every line of the servers' logs, not only warnings and errors
  absl::Duration start_timeout = absl::Seconds(60);  // time limit until all servers listen
  // Time between SIGTERM and SIGKILL; a worker also has drain_seconds of the job.
  absl::Duration grace = absl::Seconds(10);
};

// Not thread-safe. Run() can be called once.
class ScriptRun {
 public:
  // All arguments except SETTING must outlive the ScriptRun. The output of the workers goes to OUT,
  // after the names of the processes. REQUIRES: HOSTS is prepared.
  ScriptRun(const ScriptRunSetting& setting, const SshHosts& hosts, Signals& signals,
            const TempDir& dir, Console& console, Clock& clock, std::ostream& out);

  // Runs the program and blocks until all processes have ended. Returns 0 if all workers ended with
  // 0, kInterrupted or kPreempted after a signal, and otherwise the exit code of the process that
  // failed first.
  ExitCode Run();

 private:
  absl::Status StartWorkers();
  // Starts the servers with the job of worker 0: server 0 last, because it calls the others.
  absl::Status StartServers();
  absl::Status Start(uint32_t server);
  // Tells the workers the addresses of the servers, all of which listen.
  absl::Status SendAddresses();
  void Stop();
  // Handles events until HOLDS returns true or TIME has passed. Returns whether HOLDS does.
  bool HandleUntil(const std::function<bool()>& holds, absl::Duration time);
  void SignalWorkers(int number);

  void Handle(const ProcessEvent& event);
  void HandleLine(const ProcessEvent& event);
  void HandleExit(const ProcessEvent& event);
  void HandleSignal(int number);
  void Listen(ServerId server, const std::string& line);
  void Fail(const absl::Status& status);
  bool workers_ended() const;

  const ScriptRunSetting setting_;
  const SshHosts& hosts_;
  Console& console_;
  Clock& clock_;
  std::ostream& out_;
  ProcessSet processes_;
  std::string job_;                     // the text of the job that worker 0 has written
  absl::Duration drain_;                // drain_seconds of the job; zero before it is known
  std::vector<std::string> addresses_;  // by server number; "" until the server prints its address
  absl::Time listen_until_ = absl::InfiniteFuture();
  std::optional<ExitCode> code_;  // set as soon as the run ends without success
  bool stopping_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_SCRIPT_RUN_H_
