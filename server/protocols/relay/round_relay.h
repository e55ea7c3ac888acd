// RoundRelay makes the updates of a job whose server folds gradients only: it passes the averaged
// gradient of each round on, and returns the new values (docs/sites.md).
#ifndef THINWIRE_SERVER_PROTOCOLS_RELAY_ROUND_RELAY_H_
#define THINWIRE_SERVER_PROTOCOLS_RELAY_ROUND_RELAY_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/protocols/state/membership.h"

namespace thinwire {

// One span of values per tensor, in the model's order.
using TensorValues = std::vector<std::span<const float>>;

// A round whose gradients are folded at every shard.
struct RelayedRound {
  // The Join of the worker that joined last: the model, the task and the hashes of the job.
  JoinRequest join;
  // The shards have no values of the other job yet: `tensors` are the first values of a worker, or
  // those of a checkpoint, and not a gradient.
  bool first = false;
  Step step;               // the last step of the round, of all shards
  uint32_t examples = 0;   // the weight of the mean; 0: no gradient
  double rate_factor = 1;  // multiplies the learning rate of the update
  TensorValues tensors;    // the mean of the gradients; valid until the call of `done`
};

// Thread-safe. The functions return without waiting.
class RoundRelay {
 public:
  virtual ~RoundRelay() = default;

  // Passes ROUND on, then calls DONE with the new values, which are valid during the call. Drops
  // DONE if there will be no values: the process ends. REQUIRES: no other round is under way.
  virtual void Pass(RelayedRound round, std::function<void(const TensorValues&)> done) = 0;
  // The job has no live worker any more. DEPARTURE: why the workers have left.
  virtual void Pause(const Departure& departure) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_RELAY_ROUND_RELAY_H_
