// CallServer makes one call of the Control service (proto/control.proto) for an operator.
//
//   CallServer(flags, ServerId{0}, &Control::Stub::Scale, request)
#ifndef THINWIRE_CLI_RPC_CALL_SERVER_H_
#define THINWIRE_CLI_RPC_CALL_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/rpc/call_error.h"
#include "cli/rpc/server_flags.h"
#include "common/ids.h"
#include "common/status_macros.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"

namespace thinwire {

// The lead calls the other servers for up to two seconds before it replies.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(10);

// Calls METHOD at the server number SERVER of --addresses. Blocks until the server replies, at most
// TIMEOUT. Errors:
// InvalidArgument for malformed addresses or a server that they do not list; those of
// LoadCredentials; those of the call (CallError).
template <typename Request, typename Reply>
absl::StatusOr<Reply> CallServer(const ServerFlags& flags, ServerId server,
                                 grpc::Status (Control::Stub::*method)(grpc::ClientContext*,
                                                                       const Request&, Reply*),
                                 const Request& request, absl::Duration timeout = kCallTimeout) {
  ASSIGN_OR_RETURN(const std::vector<std::string> list, SplitAddresses(flags));
  if (server.value >= list.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--server: out of range (expected below ",
                                                   list.size(), ", the number of --addresses, got ",
                                                   server.value, ")"));
  }
  ASSIGN_OR_RETURN(const Credentials credentials, LoadCredentials(flags));
  const std::string& address = list[server.value];
  Control::Stub stub(credentials.Connect(address, server, grpc::ChannelArguments()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  Reply reply;
  const grpc::Status status = (stub.*method)(&context, request, &reply);
  if (status.ok()) return reply;
  return CallError(status, ServerName(server, address), credentials);
}

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_CALL_SERVER_H_
