#include "cli/status/status_command.h"

#include <poll.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "admin/server_history.h"
#include "admin/server_json.h"
#include "cli/process/process_set.h"
#include "cli/rpc/server_calls.h"
#include "cli/rpc/server_flags.h"
#include "cli/status/status_text.h"
#include "common/base/status_macros.h"
#include "config/command_flags.h"
#include "proto/grpc_credentials.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire status --addresses a:7000,b:7000\n"
    "  thinwire status --addresses a:7000,b:7000 --watch --credentials certs/viewer\n"
    "  thinwire status --addresses a:7000 --json\n"
    "Exits with 69 if no server answers. --watch ends with Ctrl-C.";

constexpr absl::Duration kTimeout = absl::Seconds(5);
// With --watch, Ctrl-C waits for pending calls.
constexpr absl::Duration kWatchTimeout = absl::Seconds(2);
constexpr int kIntervalMilliseconds = 1000;
// Moves to the first line of the terminal and clears it.
constexpr char kClearScreen[] = "\033[H\033[2J";

// Asks the servers of a job and prints their status.
class StatusView {
 public:
  StatusView(const StatusCommand& command, const std::vector<std::string>& addresses,
             const Credentials& credentials, Console& console, std::ostream& out)
      : command_(command), calls_(addresses, credentials), console_(console), out_(out) {
    for (uint32_t i = 0; i < addresses.size(); ++i) histories_.emplace_back(ServerId{i});
  }

  // Returns OK if a server has answered, otherwise the first error.
  absl::Status Show(absl::Duration timeout) {
    const std::vector<absl::StatusOr<StatusReply>> replies = calls_.StatusOfEach(timeout);
    const absl::Time now = absl::Now();
    std::vector<std::string> errors;
    for (size_t i = 0; i < replies.size(); ++i) {
      if (replies[i].ok()) {
        histories_[i].Add(*replies[i], now);
      } else {
        histories_[i].AddFailure(now);
        errors.push_back(std::string(replies[i].status().message()));
      }
    }
    if (command_.json) {
      out_ << ServersJson(histories_, now)
                  .dump(command_.watch ? -1 : 2, ' ', false,
                        nlohmann::ordered_json::error_handler_t::replace)
           << std::endl;
    } else {
      out_ << (command_.watch && command_.redraws ? kClearScreen : "")
           << StatusText(histories_, now) << (command_.watch ? "\n" : "") << std::flush;
    }
    for (const std::string& error : errors) console_.Error(error);
    return errors.size() == replies.size() ? replies[0].status() : absl::OkStatus();
  }

 private:
  const StatusCommand& command_;
  ServerCalls calls_;
  Console& console_;
  std::ostream& out_;
  std::vector<ServerHistory> histories_;
};

// Blocks until a stop signal arrives or the interval is over. Returns the signal, or 0.
int WaitForSignal(Signals& signals) {
  pollfd file = {.fd = signals.fd(), .events = POLLIN, .revents = 0};
  poll(&file, 1, kIntervalMilliseconds);
  for (const int number : signals.Take()) {
    if (number != SIGCHLD) return number;
  }
  return 0;
}

absl::StatusOr<ExitCode> Run(const StatusCommand& command, Console& console, std::ostream& out) {
  std::unique_ptr<Signals> signals;
  if (command.watch) {
    ASSIGN_OR_RETURN(signals, Signals::Block());
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, SplitAddresses(command.servers));
  ASSIGN_OR_RETURN(const Credentials credentials, LoadCredentials(command.servers));
  StatusView view(command, addresses, credentials, console, out);
  if (!command.watch) return ExitCodeOf(view.Show(kTimeout));
  for (;;) {
    view.Show(kWatchTimeout).IgnoreError();
    const int number = WaitForSignal(*signals);
    if (number != 0) return number == SIGINT ? ExitCode::kInterrupted : ExitCode::kPreempted;
    if (!out) return absl::UnavailableError("standard output: cannot be written");
  }
}

}  // namespace

CLI::App* AddStatus(CLI::App& app, StatusCommand& command) {
  CLI::App* status = CommandFlags(app).AddSubcommand("status", "Shows the state of a running job");
  CommandFlags flags(*status);
  AddServerFlags(flags, command.servers, "a viewer's or operator's").Required();
  flags.AddSwitch("--watch", command.watch,
                  "Shows the state once a second, on a terminal in place");
  flags.AddSwitch("--json", command.json,
                  "Prints the state as JSON, as in /status.json of an admin port. With --watch, "
                  "one line per second");
  flags.Footer(kExamples);
  return status;
}

ExitCode RunStatus(const StatusCommand& command, Console& console, std::ostream& out) {
  const absl::StatusOr<ExitCode> code = Run(command, console, out);
  return code.ok() ? *code : Fail(console, code.status());
}

}  // namespace thinwire
