// `thinwire train`: runs a job that a job file and flags describe, then prints a table and writes a
// report.
#ifndef THINWIRE_CLI_TRAIN_TRAIN_COMMAND_H_
#define THINWIRE_CLI_TRAIN_TRAIN_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/process/command_lines.h"
#include "cli/process/process_set.h"
#include "cli/process/temp_dir.h"
#include "cli/terminal/console.h"
#include "cli/train/train_run.h"
#include "common/base/exit_code.h"
#include "config/connection_flags.h"
#include "config/field_flags.h"
#include "proto/job.pb.h"

namespace CLI {
class App;
}

namespace thinwire {

struct TrainCommand {
  std::string config_file;  // path of the job file; empty: the flags alone define the job
  std::string bin_dir;      // folder of the server and worker programs; empty: see FindPrograms()
  std::string self;         // path of the thinwire program
  std::string temp_parent;  // folder in which the run creates its private folder
  std::string state_dir;    // folder of the servers' state; empty: a folder in the private folder
  bool resume = false;      // continues the run in `state_dir`
  uint32_t restarts = 3;    // the largest number of processes that are started again
  uint32_t grow_to = 0;     // see TrainSetting
  bool verbose = false;     // shows all settings of the job at the start
  OutputFile output = {};
  BandwidthFlags bandwidth = {};  // of each process of the run
  std::string admin = "";         // address of the status page; empty: none
  std::string tensorboard = "";   // folder of TensorBoard's event files; empty: none
  std::string trace = "";         // file of the trace of all processes; empty: none
  std::optional<FieldFlags> fields =
      {};  // flags of the job's fields; set by AddTrain and AddLaunch
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddTrain(CLI::App& app, TrainCommand& command);

// Adds the flags that `thinwire train` and `thinwire launch` share to TRAIN, without those of the
// job's fields.
void AddRunFlags(CLI::App& app, TrainCommand& command);

// The machines that need the files of a job, such as its data set.
enum class FilesOf { kThisMachine, kOtherMachines };

// Reads the job file, applies the flags, and checks the job. Checks also that its files are on this
// machine if FILES says so. Shows warnings on CONSOLE. Errors: those of config/job_text.h and
// config/job.h.
absl::StatusOr<JobConfig> JobOf(const std::string& config_file, const FieldFlags& flags,
                                FilesOf files, Console& console);

// Checks that the report and the trained model can be written on this machine. Errors: those of
// CheckReportPath and CheckReplaceable.
absl::Status CheckOutputs(const TrainCommand& command, const JobConfig& config);

// Checks --grow_to. REQUIRES: CheckJob accepts CONFIG. Errors: InvalidArgument.
absl::Status CheckGrowTo(uint32_t grow_to, const JobConfig& config);

// Runs the job of SETTING and ends when its table and its report are written. Fills in the members
// of SETTING that COMMAND has. Keeps DIR if the run has problems.
ExitCode RunJob(const TrainCommand& command, TrainSetting setting, Signals& signals, TempDir& dir,
                Console& console, std::ostream& out);

// Runs the job on this machine. Prints the table of results to `out` and messages to `console`.
// REQUIRES: CheckJob accepts `config`.
ExitCode RunTrain(const TrainCommand& command, const JobConfig& config, Console& console,
                  std::ostream& out);

// Runs the same with the job of the command line.
ExitCode RunTrain(const TrainCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_TRAIN_COMMAND_H_
