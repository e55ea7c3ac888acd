// Applies the access table (server/edge/access.h) to the calls of a gRPC server with mutual TLS.
#ifndef THINWIRE_SERVER_EDGE_GRPC_ACCESS_H_
#define THINWIRE_SERVER_EDGE_GRPC_ACCESS_H_

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string>

#include "server/edge/access.h"

namespace thinwire {

// Returns the check of every call of a server of JOB. gRPC runs it before the handler of the call,
// also for health checks, reflection and methods that do not exist.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessCheck(std::string job);

// Returns the evidence of a call's peer.
WorkerProof ProofOf(const grpc::ServerContextBase& call);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_GRPC_ACCESS_H_
