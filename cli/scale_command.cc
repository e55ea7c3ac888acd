#include "cli/scale_command.h"

#include <grpcpp/grpcpp.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "common/status_macros.h"
#include "config/job.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"

namespace thinwire {
namespace {

// The lead calls the other servers for up to two seconds.
constexpr absl::Duration kTimeout = absl::Seconds(10);

// Returns the number of workers before the change.
absl::StatusOr<uint32_t> Scale(const ScaleCommand& command) {
  const std::string lead = command.addresses.substr(0, command.addresses.find(','));
  if (!IsAddress(lead, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--addresses: wrong value (expected host:port with a port from 1 to 65535, "
                     "got \"",
                     lead, "\")"));
  }
  ASSIGN_OR_RETURN(const Credentials credentials,
                   Credentials::Load(command.credentials, std::nullopt));
  const auto stub =
      Control::NewStub(credentials.Connect(lead, ServerId{0}, grpc::ChannelArguments()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  ScaleRequest request;
  request.set_workers(command.workers);
  ScaleReply reply;
  const grpc::Status status = stub->Scale(&context, request, &reply);
  if (status.ok()) return reply.workers();
  // gRPC and absl number their status codes equally.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat("server 0 (", lead, "): ", status.error_message()));
}

}  // namespace

ExitCode RunScale(const ScaleCommand& command, Console& console, std::ostream& out) {
  const absl::StatusOr<uint32_t> before = Scale(command);
  if (!before.ok()) {
    console.Error(std::string(before.status().message()));
    return ExitCodeOf(before.status());
  }
  out << "workers " << *before << " -> " << command.workers << std::endl;
  return ExitCode::kOk;
}

}  // namespace thinwire
