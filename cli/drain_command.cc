#include "cli/drain_command.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/rpc/call_server.h"
#include "common/base/ids.h"
#include "config/command_flags.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire drain --addresses a:7000,b:7000 --worker 3\n"
    "  thinwire drain --addresses a:7000,b:7000 --server 1\n"
    "A drained worker finishes its step, pushes its residual, leaves and exits with code 0. The "
    "others continue, and its examples are dealt anew. Start it again by hand.\n"
    "A drained server refuses new workers, completes the requests in progress, writes a checkpoint "
    "if the job has durability, and exits with code 0, as after SIGTERM. With durability, its "
    "workers wait for server_return_seconds for its next start; `thinwire train` starts it again "
    "at once. Without durability, they exit with code 69, and the state of the job is lost.";

}  // namespace

CLI::App* AddDrain(CLI::App& app, DrainCommand& command) {
  CLI::App* drain = CommandFlags(app).AddSubcommand(
      "drain", "Takes one worker or one server out of a running job");
  CommandFlags flags(*drain);
  AddServerFlags(flags, command.servers, "an operator's").Required();
  const Flag worker =
      flags.Add("--worker", command.worker, "The number of the worker that leaves").Type("NUMBER");
  flags.Add("--server", command.server, "The number of the server that stops")
      .Type("NUMBER")
      .Excludes(worker);
  flags.Footer(kExamples);
  return drain;
}

ExitCode RunDrain(const DrainCommand& command, Console& console, std::ostream& out) {
  if (!command.worker.has_value() && !command.server.has_value()) {
    console.Error("--worker, --server: expected one of them, got none");
    return ExitCode::kUsage;
  }
  DrainRequest request;
  if (command.worker.has_value()) request.set_worker(*command.worker);
  const absl::StatusOr<DrainReply> reply =
      CallServer(command.servers, ServerId{command.server.value_or(0)}, request);
  if (!reply.ok()) return Fail(console, reply.status());
  if (command.worker.has_value()) {
    out << "worker " << *command.worker
        << " finishes its step, pushes its residual, leaves and exits with code 0" << std::endl;
  } else {
    out << "server " << *command.server
        << " stops and exits with code 0. With durability, its workers wait for its next start; "
           "without, they exit with code 69"
        << std::endl;
  }
  return ExitCode::kOk;
}

}  // namespace thinwire
