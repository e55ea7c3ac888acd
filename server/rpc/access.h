// Access decides which peers may call which methods of a server. One table maps every method to the
// peers that may call it; everything that is not in the table is refused. docs/security.md has the
// same table.
//
// A peer is known by the identity in its certificate, which must be of the server's job. Workers
// that share a certificate are told apart by tokens (worker_tokens.h). Without mutual TLS nothing
// is checked. grpc_access.h applies the table to the calls of a server.
#ifndef THINWIRE_SERVER_RPC_ACCESS_H_
#define THINWIRE_SERVER_RPC_ACCESS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/tls/identity.h"
#include "server/protocols/membership/worker_tokens.h"

namespace thinwire {

// The peers of a row of the table, as bits.
inline constexpr uint8_t kLead = 1;          // server 0
inline constexpr uint8_t kOtherServers = 2;  // the servers from 1
inline constexpr uint8_t kWorkers = 4;
inline constexpr uint8_t kOperators = 8;
inline constexpr uint8_t kViewers = 16;
inline constexpr uint8_t kEverybody = 31;

struct AccessRow {
  absl::string_view method;  // as in a call: /package.Service/Method
  uint8_t peers;
};
absl::Span<const AccessRow> AccessTable();

// Returns OK if PEER is of JOB. Errors: PermissionDenied.
absl::Status CheckJob(const Identity& peer, absl::string_view job);
// Returns OK if PEER may call METHOD of a server of JOB. Errors: PermissionDenied.
absl::Status CheckAccess(absl::string_view method, const Identity& peer, absl::string_view job);

// The evidence that a peer may act for a worker. Without mutual TLS, none is required.
struct WorkerProof {
  std::optional<WorkerId> certified;  // the number in the certificate
  bool needs_token = false;           // the certificate has no number
  std::string token;                  // of the call; "": none
};

// Returns OK if a peer with PROOF may be a process of WORKER. Errors: PermissionDenied.
absl::Status CheckWorker(const WorkerProof& proof, WorkerId worker);
// Returns OK if a peer with PROOF may act as the process INCARNATION of WORKER. Errors:
// PermissionDenied.
absl::Status CheckProcess(const WorkerProof& proof, const WorkerTokens& tokens, WorkerId worker,
                          Incarnation incarnation);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_ACCESS_H_
