#include "server/job/job_options.h"

#include <utility>

namespace thinwire {
namespace {

ModeLimits ModeLimitsOf(const JobOptions& options) {
  return {.sparse_updates = options.sparse_updates,
          .publish = options.publish,
          .staleness = options.staleness,
          .grows_batch = options.growth.has_value(),
          .clip_norm = options.clip_norm,
          .keeps_only_checkpoints =
              options.durable.has_value() && options.durable->durability == Durability::kCheckpoint,
          .adaptive = options.adaptive.has_value(),
          .config = options.config};
}

}  // namespace

ShardOptions ShardOptionsOf(const JobOptions& options) {
  return {.rule = options.rule,
          .generation = options.generation,
          .sparse_updates = options.sparse_updates,
          .staleness = options.staleness,
          .publish = options.publish,
          .checkpointed = options.durable.has_value(),
          .clips = options.clip_norm > 0,
          .memory = options.memory};
}

JobState FirstState(const JobOptions& options) {
  JobIdentity identity = {.job = options.name,
                          .server = options.server,
                          .generation = options.generation,
                          .epoch = options.epoch};
  if (identity.leads()) identity.run = options.run;
  return JobState(std::move(identity), options.rule, ModeLimitsOf(options), options.lease,
                  options.server_count);
}

}  // namespace thinwire
