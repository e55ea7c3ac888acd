// CallServer makes one call of the Control service (proto/control.proto) for an operator.
//
//   CallServer(addresses, ServerId{0}, credentials_dir, &Control::Stub::Scale, request)
#ifndef THINWIRE_CLI_RPC_CALL_SERVER_H_
#define THINWIRE_CLI_RPC_CALL_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/rpc/call_error.h"
#include "common/ids.h"
#include "common/status_macros.h"
#include "config/job.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"

namespace thinwire {

// The lead calls the other servers for up to two seconds before it replies.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(10);

// Splits the value of --addresses, for a command that does not know the number of servers. Errors:
// those of ParseAddresses.
inline absl::StatusOr<std::vector<std::string>> SplitAddresses(std::string_view addresses) {
  return ParseAddresses(addresses, static_cast<uint32_t>(1 + std::ranges::count(addresses, ',')));
}

// Calls METHOD at the server number SERVER of ADDRESSES, which is the value of --addresses.
// CREDENTIALS_DIR: a folder with an operator's certificate; "": plaintext. Blocks until the server
// replies. Errors: InvalidArgument for malformed addresses or a server that they do not list; those
// of Credentials::Load; those of the call (CallError).
template <typename Request, typename Reply>
absl::StatusOr<Reply> CallServer(std::string_view addresses, ServerId server,
                                 const std::string& credentials_dir,
                                 grpc::Status (Control::Stub::*method)(grpc::ClientContext*,
                                                                       const Request&, Reply*),
                                 const Request& request) {
  ASSIGN_OR_RETURN(const std::vector<std::string> list, SplitAddresses(addresses));
  if (server.value >= list.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--server: out of range (expected below ",
                                                   list.size(), ", the number of --addresses, got ",
                                                   server.value, ")"));
  }
  ASSIGN_OR_RETURN(const Credentials credentials, Credentials::Load(credentials_dir, std::nullopt));
  const std::string& address = list[server.value];
  Control::Stub stub(credentials.Connect(address, server, grpc::ChannelArguments()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  Reply reply;
  const grpc::Status status = (stub.*method)(&context, request, &reply);
  if (status.ok()) return reply;
  return CallError(status, ServerName(server, address), credentials);
}

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_CALL_SERVER_H_
