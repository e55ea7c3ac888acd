// Applies the access table (server/edge/access.h) to the calls of a gRPC server with mutual TLS.
#ifndef THINWIRE_SERVER_EDGE_GRPC_ACCESS_H_
#define THINWIRE_SERVER_EDGE_GRPC_ACCESS_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <memory>
#include <optional>
#include <string>

#include "common/ids.h"

namespace thinwire {

// Returns the check of every call of a server of JOB. gRPC runs it before the handler of the call,
// also for health checks, reflection and methods that do not exist.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessCheck(std::string job);

// Returns the worker number in the peer's certificate. nullopt: the certificate has no number, or
// the connection has no TLS, so the peer may be any worker.
std::optional<WorkerId> CertifiedWorker(const grpc::AuthContext& peer);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_GRPC_ACCESS_H_
