// `thinwire completion`: scripts that complete the command line of `thinwire` in a shell. They are
// made from the definitions of the commands and flags. A script knows the commands, the flags of
// each command, and the values of flags: the names of modes, codecs and models, files, and folders.
#ifndef THINWIRE_CLI_COMPLETION_H_
#define THINWIRE_CLI_COMPLETION_H_

#include <ostream>
#include <string>

#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct CompletionCommand {
  std::string shell;  // bash, zsh or fish
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddCompletion(CLI::App& app, CompletionCommand& command);

// Prints the script of the shell for APP, the command line of `thinwire`, to OUT.
ExitCode RunCompletion(const CompletionCommand& command, const CLI::App& app, std::ostream& out);

// Return the script for APP, the command line of `thinwire`.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

}  // namespace thinwire

#endif  // THINWIRE_CLI_COMPLETION_H_
