#include "cli/scale_command.h"

#include "absl/status/statusor.h"
#include "cli/rpc/call_server.h"
#include "common/base/ids.h"
#include "config/command_flags.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

constexpr char kExamples[] =
    "Examples:\n"
    "  thinwire scale --addresses a:7000,b:7000 --workers 8\n"
    "The lead, the first address, announces the step from which on the examples are dealt among "
    "the "
    "new set of workers. `thinwire train` starts added workers by itself; elsewhere start them "
    "with "
    "worker --worker 6. Removed workers finish their step, leave and exit with code 0.";

}  // namespace

CLI::App* AddScale(CLI::App& app, ScaleCommand& command) {
  CLI::App* scale =
      CommandFlags(app).AddSubcommand("scale", "Changes the number of workers of a running job");
  CommandFlags flags(*scale);
  AddServerFlags(flags, command.servers, "an operator's").Required();
  flags
      .Add("--workers", command.workers,
           "The new number of workers, from 1 to max_workers of the job")
      .Type("COUNT")
      .Required();
  flags.Footer(kExamples);
  return scale;
}

ExitCode RunScale(const ScaleCommand& command, Console& console, std::ostream& out) {
  ScaleRequest request;
  request.set_workers(command.workers);
  const absl::StatusOr<ScaleReply> before = CallServer(command.servers, ServerId{0}, request);
  if (!before.ok()) return Fail(console, before.status());
  out << "workers " << before->workers() << " -> " << command.workers << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
