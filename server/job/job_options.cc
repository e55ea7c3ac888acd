#include "server/job/job_options.h"

#include <algorithm>
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
          .relays = options.relay != nullptr,
          .config = options.config};
}

}  // namespace

bool MayNeedSums(const JobOptions& options) {
  return options.clip_norm > 0 ||
         std::ranges::any_of(options.group_updates, [](const GroupUpdate& update) {
           return update.optimizer->reads_norms();
         });
}

SharedTensorSettings SharedTensorSettingsOf(const JobOptions& options) {
  return {.rule = options.rule,
          .clip_norm = options.clip_norm,
          .logs = options.durable.has_value() && options.durable->durability == Durability::kLog,
          .adaptive = options.adaptive.has_value()};
}

ShardOptions ShardOptionsOf(const JobOptions& options) {
  return {.rule = options.rule,
          .generation = options.generation,
          .sparse_updates = options.sparse_updates,
          .staleness = options.staleness,
          .publish = options.publish,
          .checkpointed = options.durable.has_value(),
          .clip_norm = options.clip_norm,
          .relayed = options.relay != nullptr,
          .relayed_until = options.relayed_until,
          .memory = options.memory};
}

JobState FirstState(const JobOptions& options) {
  JobIdentity identity = {.job = options.name,
                          .server = options.server,
                          .generation = options.generation,
                          .epoch = options.epoch};
  if (identity.leads()) identity.run = options.run;
  return JobState(std::move(identity), options.rule, ModeLimitsOf(options), options.lease,
                  options.server_count, options.member_count);
}

}  // namespace thinwire
