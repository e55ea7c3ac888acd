// `thinwire config`: checks job files and prints the effective job.
#ifndef THINWIRE_CLI_CONFIG_COMMAND_H_
#define THINWIRE_CLI_CONFIG_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct ConfigCommand {
  // The subcommands. AddConfig sets them.
  CLI::App* check = nullptr;
  CLI::App* show = nullptr;
  std::vector<std::string> files;  // of check
  std::string state_dir;           // of check
  std::string file;                // of show
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddConfig(CLI::App& app, ConfigCommand& command);

// Runs the subcommand of the command line.
ExitCode RunConfig(const ConfigCommand& command, std::ostream& out, std::ostream& err);

// Prints "FILE: ok" to the stream `out` for each valid job file FILE. Prints the problems of
// invalid job files, and warnings, to the stream `err`. A warning does not change the exit code. If
// STATE_DIR is not empty, also measures the disk of this folder for jobs that write an event log
// (doctor/disk_check.h).
ExitCode CheckConfigFiles(const std::vector<std::string>& files, const std::string& state_dir,
                          std::ostream& out, std::ostream& err);

// Prints the effective job of the job file `file` to the stream `out`: every setting that has an
// effect, including defaults. If the file is invalid, prints its problems to the stream `err`.
ExitCode ShowConfigFile(const std::string& file, std::ostream& out, std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CONFIG_COMMAND_H_
