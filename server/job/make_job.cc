#include "server/job/make_job.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/text/problems.h"
#include "server/core/optimizer/group_updates.h"
#include "server/protocols/checkpoints/stored_state.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<Job>> MakeJob(const JobSpec& spec, ServerSettings settings,
                                             Clock& clock, const JobExecutors& executors,
                                             std::unique_ptr<Peers> peers) {
  Problems problems = spec.Validate();
  problems.Require(settings.server.value < spec.server_count, "server",
                   absl::StrCat("below ", spec.server_count, ", the value of servers"),
                   settings.server.value);
  problems.Require(spec.server_count == 1 || settings.server.value != 0 || peers != nullptr,
                   "addresses", "the address of every server", "none");
  problems.Append(spec.ProcessProblems());
  // The log has no record of an update that another job makes.
  if (settings.relay != nullptr && spec.recovery.durability == Durability::kLog) {
    problems.Add(
        "durability",
        "not possible in a job that relays its rounds (expected none or checkpoint, got log)");
  }
  RETURN_IF_ERROR(problems.ToStatus());
  JobOptions options;
  options.name = spec.name;
  options.config = std::move(settings.config);
  options.server = settings.server;
  options.server_count = spec.server_count;
  options.rule = spec.rule;
  options.member_count = spec.members;
  options.auto_rule = spec.auto_rule;
  options.groups = spec.AllGroups();
  ASSIGN_OR_RETURN(options.group_updates, MakeGroupUpdates(options.groups, spec.schedule));
  options.sparse_updates = spec.sparse_updates;
  options.staleness = spec.staleness;
  if (spec.schedule.grows_batch()) options.growth = spec.schedule.growth;
  options.publish = spec.publish;
  options.adaptive = spec.push.adaptive;
  options.clip_norm = spec.clip_norm;
  options.lease = spec.lease;
  options.start_timeout = spec.start_timeout;
  options.epoch = settings.epoch;
  options.run = settings.run;
  options.token_key = std::move(settings.token_key);
  options.memory_budget_bytes = settings.memory_budget_bytes;
  options.memory = settings.memory;
  options.observer = settings.observer;
  options.relay = settings.relay;
  options.relayed_until = settings.relayed_until;
  options.insecure = settings.insecure;
  options.page = std::move(settings.page);
  options.drained = std::move(settings.drained);
  options.tracer = settings.tracer;
  options.durable = std::move(settings.durable);
  if (options.durable.has_value()) {
    options.durable->durability = spec.recovery.durability;
    options.durable->checkpoint_interval = spec.recovery.checkpoint_interval;
    options.durable->keep_log = spec.recovery.keep_log;
    options.durable->retention = spec.recovery.retention;
    options.durable->tracer = settings.tracer;
    options.durable->failure_interval = spec.recovery.failure_interval;
    if (!spec.push.adaptive.has_value()) options.durable->snapshot = nullptr;
    ASSIGN_OR_RETURN(options.generation, BeginGeneration(*options.durable, spec.rule.fold));
  }
  auto job = std::make_unique<Job>(std::move(options), clock, executors, std::move(peers));
  RETURN_IF_ERROR(job->Recover());
  return job;
}

}  // namespace thinwire
