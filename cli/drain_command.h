// `thinwire drain`: takes one worker or one server out of a running job.
#ifndef THINWIRE_CLI_DRAIN_COMMAND_H_
#define THINWIRE_CLI_DRAIN_COMMAND_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "cli/rpc/server_flags.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct DrainCommand {
  ConnectionFlags servers;
  // One of them is set.
  std::optional<uint32_t> worker;
  std::optional<uint32_t> server;
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddDrain(CLI::App& app, DrainCommand& command);

// Asks the lead to drain `worker`, or `server` to stop. Returns when the request is accepted, and
// prints the effect to `out` and errors to `console`. Returns kUsage without a target, kConfig if
// the job refuses the request, and kUnavailable if the server cannot be reached.
ExitCode RunDrain(const DrainCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DRAIN_COMMAND_H_
