// A Status of ours as gRPC sends it: the codes are the same.
#ifndef THINWIRE_SERVER_EDGE_GRPC_STATUS_H_
#define THINWIRE_SERVER_EDGE_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace thinwire {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_GRPC_STATUS_H_
