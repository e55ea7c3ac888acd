// Conversion of absl's status to gRPC's. Both number their codes equally.
#ifndef THINWIRE_PROTO_GRPC_STATUS_H_
#define THINWIRE_PROTO_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace thinwire {

// Returns STATUS with the same code and message.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace thinwire

#endif  // THINWIRE_PROTO_GRPC_STATUS_H_
