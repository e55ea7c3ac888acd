// `thinwire train`: file and flags become a checked configuration, a run, a table and a report.
#ifndef THINWIRE_CLI_TRAIN_COMMAND_H_
#define THINWIRE_CLI_TRAIN_COMMAND_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/console.h"
#include "cli/field_flags.h"
#include "common/exit_code.h"
#include "proto/config.pb.h"

namespace thinwire {

struct TrainCommand {
  std::string config_file;  // empty: flags alone
  std::string bin_dir;      // empty: beside this program
  std::string self;         // this program's path
  std::string temp_parent;  // where the run's private folder is made
};

// The file with the flags on top, checked. Errors: those of config_text.h, with "--FIELD" as the
// place of a flag.
absl::StatusOr<TrainConfig> TrainConfigOf(const std::string& config_file, const FieldFlags& flags);

// The table goes to OUT, everything else to CONSOLE.
ExitCode RunTrain(const TrainCommand& command, const TrainConfig& config, Console& console,
                  std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_COMMAND_H_
