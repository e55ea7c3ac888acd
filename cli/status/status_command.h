// `thinwire status`: shows the state of a running job, once or until Ctrl-C.
#ifndef THINWIRE_CLI_STATUS_STATUS_COMMAND_H_
#define THINWIRE_CLI_STATUS_STATUS_COMMAND_H_

#include <ostream>
#include <string>

#include "cli/rpc/server_flags.h"
#include "cli/terminal/console.h"
#include "common/base/exit_code.h"

namespace CLI {
class App;
}

namespace thinwire {

struct StatusCommand {
  ConnectionFlags servers;
  bool watch = false;  // shows the status once a second
  bool json = false;
  bool redraws = false;  // `out` is a terminal: --watch replaces the last text
};

// Adds the command with its flags to APP. COMMAND must outlive APP.
CLI::App* AddStatus(CLI::App& app, StatusCommand& command);

// Asks all servers and prints their status to `out`, and to `console` an error for each server that
// does not answer. Without `watch`, returns kOk if a server has answered, otherwise the exit code
// of the first error. With `watch`, returns when SIGINT or SIGTERM arrives. REQUIRES with `watch`:
// no other thread runs yet.
ExitCode RunStatus(const StatusCommand& command, Console& console, std::ostream& out);

}  // namespace thinwire

#endif  // THINWIRE_CLI_STATUS_STATUS_COMMAND_H_
