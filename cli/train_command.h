// `thinwire train`: a job file and flags become a run, a table and a report.
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
  std::string config_file;  // empty: flags alone
  std::string bin_dir;      // empty: beside this program
  std::string self;         // this program's path
  std::string temp_parent;  // where the run's private folder is made
};

// Reads the job file, applies the flags, and checks the job. Errors: those of config/job_text.h and
// config/job.h.
absl::StatusOr<JobConfig> JobOf(const std::string& config_file, const FieldFlags& flags);

// Runs the job. The table goes to OUT, messages go to CONSOLE. REQUIRES: CheckJob accepts CONFIG.
ExitCode RunTrain(const TrainCommand& command, const JobConfig& config, Console& console,
                  std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_COMMAND_H_
