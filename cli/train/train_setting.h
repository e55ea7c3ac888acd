// TrainSetting: the settings of a training run (train_run.h).
#ifndef THINWIRE_CLI_TRAIN_TRAIN_SETTING_H_
#define THINWIRE_CLI_TRAIN_TRAIN_SETTING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/hosts/ssh_hosts.h"
#include "cli/process/command_lines.h"
#include "cli/train/run_summary.h"
#include "cli/train/train_admin.h"
#include "config/connection_flags.h"
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
  // The largest number of workers that the run starts if the batch grows (--grow_to); 0: it starts
  // those of the job and those that an operator adds.
  uint32_t grow_to = 0;
  // The second and later restarts of a process are delayed.
  absl::Duration restart_delay = absl::Seconds(1);
  OutputFile output;
  BandwidthFlags bandwidth;  // `hosts` has the limits for other machines
  // Show and write the figures of the run; must outlive the TrainRun; null: no admin port, no
  // TensorBoard files.
  TrainAdmin* admin = nullptr;
  RunSummary* summary = nullptr;
  bool trace =
      false;  // whether each process writes its trace, NAME.trace, to the folder of the logs
  absl::Duration start_timeout = absl::Seconds(60);  // time limit until all servers listen
  // Time between SIGTERM and SIGKILL of a server. A worker gets `drain_seconds` of the job in
  // addition.
  absl::Duration grace = absl::Seconds(10);

  bool keeps_state() const { return !state_dir.empty(); }
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_TRAIN_SETTING_H_
