// What a worker's configuration says to its client.
#ifndef THINWIRE_WORKER_CLIENT_OPTIONS_H_
#define THINWIRE_WORKER_CLIENT_OPTIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/options/client_options.h"
#include "proto/config.pb.h"

namespace thinwire {

// How long the whole run is: of all workers, and of each.
struct RunLength {
  uint64_t examples = 0;
  uint64_t steps = 0;
};

// Errors: InvalidArgument for a codec that there is not.
absl::StatusOr<ClientOptions> MakeClientOptions(const WorkerConfig& config,
                                                const RunLength& planned);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_CLIENT_OPTIONS_H_
