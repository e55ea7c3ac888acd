// `thinwire mode`: changes the mode of a running job.
#ifndef THINWIRE_CLI_MODE_COMMAND_H_
#define THINWIRE_CLI_MODE_COMMAND_H_

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

struct ModeCommand {
  ConnectionFlags servers;  // only the first is called
  std::string mode;     // sync, backup, ssp or async
  std::optional<uint32_t> backup;
  std::optional<uint64_t> slack;
  std::optional<uint32_t> fold_every;
  bool force = false;
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddMode(CLI::App& app, ModeCommand& command);

// Calls the lead, server 0. Prints the old and the new mode and the step of the change to `out` and
// errors to `console`. Returns kUsage if a flag does not fit the mode, kConfig if the job does not
// allow the mode, and kUnavailable if a server cannot be reached.
ExitCode RunMode(const ModeCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_MODE_COMMAND_H_
