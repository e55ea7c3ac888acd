// `thinwire scale`: changes the number of workers of a running job.
#ifndef THINWIRE_CLI_SCALE_COMMAND_H_
#define THINWIRE_CLI_SCALE_COMMAND_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "cli/rpc/server_flags.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct ScaleCommand {
  ConnectionFlags servers;  // only the first is called
  uint32_t workers = 0;
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddScale(CLI::App& app, ScaleCommand& command);

// Calls the lead, server 0. Prints the old and the new number to `out` and errors to `console`.
// Returns kConfig if the job does not allow the number, and kUnavailable if a server cannot be
// reached.
ExitCode RunScale(const ScaleCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_SCALE_COMMAND_H_
