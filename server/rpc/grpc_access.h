// CallAccess applies the access table (server/rpc/access.h) to a gRPC server with mutual TLS:
//
//   connection   refused unless the peer's certificate is of the server's job and valid now, also if
//                its TLS session is resumed
//   call         checked at the beginning of its handler, with the certificate and the method
//   stream       checked again at each message
//
// gRPC's hook for this purpose, AuthMetadataProcessor, is not used: in gRPC 1.51, a header named
// grpclb_client_stats ends a process that has one (docs/security.md).
//
// Without mutual TLS everything is allowed. Thread-safe.
#ifndef THINWIRE_SERVER_RPC_GRPC_ACCESS_H_
#define THINWIRE_SERVER_RPC_GRPC_ACCESS_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/grpc_credentials.h"
#include "server/rpc/access.h"

namespace thinwire {

class CallAccess {
 public:
  // CREDENTIALS: those of the server.
  explicit CallAccess(const Credentials& credentials) : credentials_(credentials) {}

  // Returns the credentials with which the server listens.
  std::shared_ptr<grpc::ServerCredentials> ForListening() const;

  // Returns OK if the peer of CALL may call METHOD. Logs a refusal, at most once a second. Errors:
  // Unauthenticated for a certificate that is not valid any more; PermissionDenied.
  absl::Status Check(const grpc::ServerContextBase& call, absl::string_view method) const;

  // Returns a function that checks the certificate of CALL's peer again.
  std::function<absl::Status()> CertificateCheck(const grpc::ServerContextBase& call) const;

 private:
  const Credentials credentials_;
};

// Returns the evidence of a call's peer.
WorkerProof ProofOf(const grpc::ServerContextBase& call);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_GRPC_ACCESS_H_
