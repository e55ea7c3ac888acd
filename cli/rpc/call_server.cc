#include "cli/rpc/call_server.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/rpc/call_error.h"
#include "common/base/status_macros.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"

namespace thinwire {
namespace {

template <typename Request, typename Reply>
absl::StatusOr<Reply> Call(const ConnectionFlags& flags, ServerId server,
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

}  // namespace

absl::StatusOr<DrainReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                      const DrainRequest& request) {
  return Call(flags, server, &Control::Stub::Drain, request);
}

absl::StatusOr<ScaleReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                      const ScaleRequest& request) {
  return Call(flags, server, &Control::Stub::Scale, request);
}

absl::StatusOr<SetModeReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                        const SetModeRequest& request) {
  return Call(flags, server, &Control::Stub::SetMode, request);
}

absl::StatusOr<SaveCheckpointReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                               const SaveCheckpointRequest& request,
                                               absl::Duration timeout) {
  return Call(flags, server, &Control::Stub::SaveCheckpoint, request, timeout);
}

absl::StatusOr<RestoreCheckpointReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                                  const RestoreCheckpointRequest& request,
                                                  absl::Duration timeout) {
  return Call(flags, server, &Control::Stub::RestoreCheckpoint, request, timeout);
}

}  // namespace thinwire
