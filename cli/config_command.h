// `thinwire config`: checks job files and prints the effective job.
#ifndef THINWIRE_CLI_CONFIG_COMMAND_H_
#define THINWIRE_CLI_CONFIG_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "common/exit_code.h"

namespace thinwire {

// Prints "FILE: ok" to OUT for each valid job file, and the problems of each invalid job file to
// ERR.
ExitCode CheckConfigFiles(const std::vector<std::string>& files, std::ostream& out,
                          std::ostream& err);

// Prints the effective job of FILE to OUT: every setting that has an effect, including defaults. If
// FILE is invalid, prints its problems to ERR.
ExitCode ShowConfigFile(const std::string& file, std::ostream& out, std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CONFIG_COMMAND_H_
