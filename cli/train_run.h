// TrainRun: a whole cluster on this machine, from the first server's start to the last one's end.
//
//   servers start -> all listen -> workers start -> ... -> every worker has ended -> servers are
//   asked -> servers stop
//
// A lost worker is noted and the others go on; a lost server ends the run as soon as the workers
// have noticed. After SIGINT or SIGTERM workers are stopped first, then servers; what does not stop
// within a grace is killed, and so is everything at a second signal.
#ifndef THINWIRE_CLI_TRAIN_RUN_H_
#define THINWIRE_CLI_TRAIN_RUN_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/console.h"
#include "common/exit_code.h"
#include "cli/launch.h"
#include "cli/process_set.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/server_calls.h"
#include "cli/signals.h"
#include "cli/temp_dir.h"
#include "common/clock.h"
#include "proto/config.pb.h"

namespace thinwire {

struct TrainSetting {
  TrainConfig config;  // CheckTrainConfig passed
  Programs programs;
  absl::Duration start_timeout = absl::Seconds(60);  // for a server to listen
  absl::Duration grace = absl::Seconds(10);          // between SIGTERM and SIGKILL
};

// Not thread-safe; for one run.
class TrainRun {
 public:
  // All but SETTING outlive the run. DIR takes the processes' configurations and logs.
  TrainRun(const TrainSetting& setting, Signals& signals, const TempDir& dir, Console& console,
           Clock& clock);

  // Returns when no process is left.
  ExitCode Run();

  const RunResult& result() const { return result_; }

 private:
  absl::Status StartServers();
  absl::Status StartWorkers();
  void AwaitServers();
  void AwaitWorkers();
  void AskServers();
  void StopServers();
  ExitCode Verdict() const;

  // Handles what happens until DONE or until the deadline, if there is one.
  template <typename Done>
  void Watch(Done done, std::optional<absl::Time> deadline);
  void Handle(const ProcessEvent& event);
  void HandleLine(const ProcessEvent& event);
  void HandleWorkerEvent(const WorkerEvent& event);
  void HandleExit(const ProcessEvent& event);
  void HandleSignal(int number);
  void ShowProgress();
  void Fail(const std::string& problem);
  void ShowTail(const std::string& name);

  // The number in "worker 3", if NAME is a worker's.
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
  std::vector<std::string> addresses_;  // of the servers; empty: not told yet
  std::unique_ptr<ServerCalls> calls_;
  std::vector<ExitStatus> ends_;          // of processes that failed
  std::optional<absl::Time> stop_by_;     // workers that run then are killed
  std::optional<absl::Time> give_up_by_;  // workers of a lost server that run then are stopped
  absl::Time next_progress_;
  int signal_ = 0;
  bool stopping_servers_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_H_
