// `thinwire completion`: prints the script that completes the command line of `thinwire` in a shell
// (config/completion.h).
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

}  // namespace thinwire

#endif  // THINWIRE_CLI_COMPLETION_H_
