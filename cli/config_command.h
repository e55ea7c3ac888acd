// `thinwire config`: checks job files and prints the effective job.
#ifndef THINWIRE_CLI_CONFIG_COMMAND_H_
#define THINWIRE_CLI_CONFIG_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "common/exit_code.h"

namespace thinwire {

// Prints "FILE: ok" to the stream `out` for each valid job file FILE. Prints the problems of invalid
// job files, and warnings, to the stream `err`. A warning does not change the exit code. If STATE_DIR
// is not empty, also measures the disk of this folder for jobs that write an event log
// (doctor/disk_check.h).
ExitCode CheckConfigFiles(const std::vector<std::string>& files, const std::string& state_dir,
                          std::ostream& out, std::ostream& err);

// Prints the effective job of the job file `file` to the stream `out`: every setting that has an
// effect, including defaults. If the file is invalid, prints its problems to the stream `err`.
ExitCode ShowConfigFile(const std::string& file, std::ostream& out, std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CONFIG_COMMAND_H_
