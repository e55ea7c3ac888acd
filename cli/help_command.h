// `thinwire help`: prints the help or the manual page of a command.
#ifndef THINWIRE_CLI_HELP_COMMAND_H_
#define THINWIRE_CLI_HELP_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct HelpCommand {
  std::vector<std::string> words;  // the command, such as {"config", "check"}; empty: `thinwire`
  bool man = false;                // prints the manual page
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddHelp(CLI::App& app, HelpCommand& command);

// Prints the help of a command of APP to OUT. Returns kUsage if there is no such command.
ExitCode RunHelp(const HelpCommand& command, const CLI::App& app, Console& console,
                 std::ostream& out);

// Returns the subcommand of APP with the name NAME. Errors: InvalidArgument with the names of all
// subcommands.
absl::StatusOr<const CLI::App*> FindCommand(const CLI::App& app, const std::string& name);

}  // namespace thinwire

#endif  // THINWIRE_CLI_HELP_COMMAND_H_
