// The RPCs of Control (control.proto) that have one request and one reply, for code that treats all
// of them alike:
//
//   ReplyTo<SetModeRequest>       SetModeReply
//   MethodOf<SetModeRequest>()    "/thinwire.Control/SetMode"
#ifndef THINWIRE_PROTO_CONTROL_RPC_H_
#define THINWIRE_PROTO_CONTROL_RPC_H_

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/control.pb.h"

namespace thinwire {

template <typename T>
struct ControlRpc {
  using Reply = T;
};

// One row per RPC.
template <typename Request>
struct ControlRpcOf;
template <>
struct ControlRpcOf<JoinRequest> : ControlRpc<JoinReply> {};
template <>
struct ControlRpcOf<AdmitRequest> : ControlRpc<AdmitReply> {};
template <>
struct ControlRpcOf<FollowRequest> : ControlRpc<FollowReply> {};
template <>
struct ControlRpcOf<RollbackRequest> : ControlRpc<RollbackReply> {};
template <>
struct ControlRpcOf<SumRequest> : ControlRpc<SumReply> {};
template <>
struct ControlRpcOf<HeartbeatRequest> : ControlRpc<HeartbeatReply> {};
template <>
struct ControlRpcOf<LeaveRequest> : ControlRpc<LeaveReply> {};
template <>
struct ControlRpcOf<ScaleRequest> : ControlRpc<ScaleReply> {};
template <>
struct ControlRpcOf<SetModeRequest> : ControlRpc<SetModeReply> {};
template <>
struct ControlRpcOf<DrainRequest> : ControlRpc<DrainReply> {};
template <>
struct ControlRpcOf<SaveCheckpointRequest> : ControlRpc<SaveCheckpointReply> {};
template <>
struct ControlRpcOf<RestoreCheckpointRequest> : ControlRpc<RestoreCheckpointReply> {};
template <>
struct ControlRpcOf<ClaimNumberRequest> : ControlRpc<ClaimNumberReply> {};
template <>
struct ControlRpcOf<StatusRequest> : ControlRpc<StatusReply> {};

// A variant of the type Of<Request> for each RPC that the lead calls at the other servers.
template <template <typename Request> typename Of>
using LeadRpcs = std::variant<Of<AdmitRequest>, Of<FollowRequest>, Of<RollbackRequest>,
                              Of<SetModeRequest>, Of<SaveCheckpointRequest>, Of<SumRequest>>;

// The reply of the RPC with this request.
template <typename Request>
using ReplyTo = typename ControlRpcOf<Request>::Reply;

// Returns the full name of the RPC with this request.
template <typename Request>
const std::string& MethodOf() {
  static const std::string method = absl::StrCat(
      "/thinwire.Control/", absl::StripSuffix(Request::descriptor()->name(), "Request"));
  return method;
}

}  // namespace thinwire

#endif  // THINWIRE_PROTO_CONTROL_RPC_H_
