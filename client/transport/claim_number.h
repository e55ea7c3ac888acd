// ClaimNumber asks the lead for a worker number, for a process that was started without one.
#ifndef THINWIRE_CLIENT_TRANSPORT_CLAIM_NUMBER_H_
#define THINWIRE_CLIENT_TRANSPORT_CLAIM_NUMBER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "proto/grpc_credentials.h"

namespace thinwire::client {

struct NumberClaim {
  std::string lead;              // host:port of server 0
  std::vector<uint32_t> kept;    // the numbers whose state this process has on its disk
  absl::Duration start_timeout;  // how long the lead is called again if it cannot be reached
  absl::Duration lease;  // the same if it has no free number: a lost process may have one that long
};

// Returns the number of the certificate in CREDENTIALS, if it has one, and else a number that the
// lead has reserved for this process. Blocks; between two calls of the lead, calls PAUSE, which waits
// for the given time and returns false to end the wait. Errors: AlreadyExists if no number is free
// for longer than a lease; Unavailable or DeadlineExceeded if the lead was not reached;
// InvalidArgument if the server is not the lead; Cancelled after PAUSE.
absl::StatusOr<WorkerId> ClaimNumber(const NumberClaim& claim, const Credentials& credentials,
                                     Clock& clock, absl::FunctionRef<bool(absl::Duration)> pause);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_CLAIM_NUMBER_H_
