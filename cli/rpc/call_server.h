// CallServer makes one call of the Control service (proto/control.proto) for an operator. The type
// of the request chooses the call.
//
//   ScaleRequest request;
//   const absl::StatusOr<ScaleReply> reply = CallServer(flags, ServerId{0}, request);
#ifndef THINWIRE_CLI_RPC_CALL_SERVER_H_
#define THINWIRE_CLI_RPC_CALL_SERVER_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/rpc/server_flags.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// The lead calls the other servers for up to two seconds before it replies.
inline constexpr absl::Duration kCallTimeout = absl::Seconds(10);

// Calls the server number SERVER of --addresses. Blocks until the server replies, at most
// kCallTimeout, or TIMEOUT. Errors: InvalidArgument for malformed addresses or a server that they
// do not list; those of LoadCredentials; those of the call (CallError).
absl::StatusOr<DrainReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                      const DrainRequest& request);
absl::StatusOr<ScaleReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                      const ScaleRequest& request);
absl::StatusOr<SetModeReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                        const SetModeRequest& request);
absl::StatusOr<SaveCheckpointReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                               const SaveCheckpointRequest& request,
                                               absl::Duration timeout);
absl::StatusOr<RestoreCheckpointReply> CallServer(const ConnectionFlags& flags, ServerId server,
                                                  const RestoreCheckpointRequest& request,
                                                  absl::Duration timeout);

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_CALL_SERVER_H_
