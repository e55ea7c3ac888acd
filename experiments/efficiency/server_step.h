// ServerStepSeconds simulates synchronous steps of workers and servers in virtual time and returns
// the time of one step. Server i shares the machine and the link of worker i.
//
//   worker   forward pass | backward pass | encode each shard and push it     ... wait for the parameters
//   server                                  when all workers have pushed a shard: send its parameters
//
// Without overlap, a worker encodes after the backward pass and begins the forward pass when it has
// all parameters. With overlap, as in thinwire's client (docs/architecture.md, "A push's life"), a
// worker encodes a shard as soon as the backward pass has its gradient, on another processor than
// that of the passes, and the forward pass waits only for the parameters that it needs next.
//
// The model makes these assumptions: all workers compute equally long; the forward pass takes a
// third of the time; computing and encoding take the same time for each shard; servers and headers
// of messages cost nothing.
#ifndef THINWIRE_EXPERIMENTS_EFFICIENCY_SERVER_STEP_H_
#define THINWIRE_EXPERIMENTS_EFFICIENCY_SERVER_STEP_H_

#include <cstdint>

#include "common/model/partition.h"
#include "experiments/cluster/links.h"

namespace thinwire::lab {

struct ServerStep {
  uint32_t workers = 0;  // and servers
  double compute_seconds = 0;
  double encode_seconds = 0;  // of all values
  uint64_t push_bytes = 0;    // of one shard
  uint64_t pull_bytes = 0;
  LinkSpec link;
  bool overlap = false;
};

// Returns the mean time of the steps after the first one. REQUIRES: partition.server_count() is
// step.workers.
double ServerStepSeconds(const ServerStep& step, const Partition& partition);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_EFFICIENCY_SERVER_STEP_H_
