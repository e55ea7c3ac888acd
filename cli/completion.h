// Completion of the command line of `thinwire` in a shell: scripts that are made from the definitions
// of the commands and flags. A script knows the commands, the flags of each command, and the values of
// flags: the names of modes, codecs and models, files, and folders.
#ifndef THINWIRE_CLI_COMPLETION_H_
#define THINWIRE_CLI_COMPLETION_H_

#include <CLI/CLI.hpp>
#include <string>

namespace thinwire {

// Return the script for APP, the command line of `thinwire`.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);

}  // namespace thinwire

#endif  // THINWIRE_CLI_COMPLETION_H_
