// Backoff: the waits between a worker's attempts to reach a server.
//
//   wait before retry k = random(0, 1) * min(20 ms * 2^k, 5 s),   k = 0, 1, ...
//
// The random numbers depend on the worker and on the server. Workers that lose a server at the same
// time therefore return at different times.
#ifndef THINWIRE_CLIENT_TRANSPORT_BACKOFF_H_
#define THINWIRE_CLIENT_TRANSPORT_BACKOFF_H_

#include <random>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace thinwire::client {

// Not thread-safe.
class Backoff {
 public:
  Backoff(WorkerId worker, ServerId server);

  // Returns the wait before the next retry.
  absl::Duration Next();
  // Makes the next wait as short as the first one.
  void Reset();

 private:
  absl::Duration longest_;  // the upper limit of the next wait
  std::mt19937 random_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_BACKOFF_H_
