#include "cli/scale_command.h"

#include "absl/status/statusor.h"
#include "cli/rpc/call_server.h"
#include "common/ids.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {

ExitCode RunScale(const ScaleCommand& command, Console& console, std::ostream& out) {
  ScaleRequest request;
  request.set_workers(command.workers);
  const absl::StatusOr<ScaleReply> before = CallServer(
      command.addresses, ServerId{0}, command.credentials, &Control::Stub::Scale, request);
  if (!before.ok()) {
    console.Error(std::string(before.status().message()));
    return ExitCodeOf(before.status());
  }
  out << "workers " << before->workers() << " -> " << command.workers << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
