// Draws of a job's published parameters and of an operator's changes.
#ifndef THINWIRE_SIM_DRAWS_H_
#define THINWIRE_SIM_DRAWS_H_

#include <optional>

#include "common/spec/rule.h"
#include "proto/job.pb.h"
#include "server/core/shard.h"
#include "server/core/testing/random_events.h"

namespace thinwire::sim {

// Draws deltas that are exact or encoded, and a large, small or empty version log. Sometimes
// returns nullopt, with which shards answer reads with masters.
std::optional<PublishOptions> DrawPublish(SeededRandom& random);

// Draws a mode for the workers of RULE.
Consistency DrawConsistency(SeededRandom& random, const Rule& rule);

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_DRAWS_H_
