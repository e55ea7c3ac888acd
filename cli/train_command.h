// `thinwire train`: runs a job that a job file and flags describe, then prints a table and writes a
// report.
#ifndef THINWIRE_CLI_TRAIN_COMMAND_H_
#define THINWIRE_CLI_TRAIN_COMMAND_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/console.h"
#include "common/exit_code.h"
#include "config/field_flags.h"
#include "proto/job.pb.h"

namespace thinwire {

struct TrainCommand {
  std::string config_file;  // path of the job file; empty: the flags alone define the job
  std::string bin_dir;      // folder of the other programs; empty: near this program (launch.h)
  std::string self;         // path of this program
  std::string temp_parent;  // the folder in which the run creates its private folder
};

// Reads the job file, applies the flags, and checks the job. Errors: those of config/job_text.h and
// config/job.h.
absl::StatusOr<JobConfig> JobOf(const std::string& config_file, const FieldFlags& flags);

// Runs the job. Prints the table to OUT and messages to CONSOLE. REQUIRES: CheckJob accepts CONFIG.
ExitCode RunTrain(const TrainCommand& command, const JobConfig& config, Console& console,
                  std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_COMMAND_H_
