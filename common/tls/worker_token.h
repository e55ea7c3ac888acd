// A token proves that a process is the one to which the lead has assigned an incarnation of a
// worker. Processes that share a certificate without number show it (docs/security.md):
//
//   token = end (8 bytes) | the first 16 bytes of HMAC-SHA256(key of the run, message)
//   message = worker (4 bytes) | incarnation (8 bytes) | end (8 bytes) | name of the job
//
// Numbers are little-endian. The end is the Unix time, in seconds, from which on the token is not
// valid any more.
//
// Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_TLS_WORKER_TOKEN_H_
#define THINWIRE_COMMON_TLS_WORKER_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace thinwire {

// The gRPC metadata of a call that contains the caller's token. The name of binary metadata must
// end in "-bin".
inline constexpr char kTokenMetadata[] = "thinwire-token-bin";

// Returns the random key of a new run: 32 secret bytes. Errors: Internal if the system has no
// random numbers.
absl::StatusOr<std::string> DrawTokenKey();

// Returns the token of INCARNATION of WORKER, which is valid until END. REQUIRES: KEY is not empty.
std::string WorkerToken(absl::string_view key, absl::string_view job, WorkerId worker,
                        Incarnation incarnation, absl::Time end);

// Returns the end of TOKEN, which anybody may have made; the infinite past if it is too short.
absl::Time TokenEnd(absl::string_view token);

// Returns whether SHOWN equals TOKEN. The time of the comparison does not depend on their bytes.
bool SameToken(absl::string_view token, absl::string_view shown);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_WORKER_TOKEN_H_
