#include "client/options/job_client_options.h"

#include <algorithm>
#include <optional>

namespace thinwire {

ClientOptions MakeClientOptions(const JobSpec& job, const ClientSettings& settings) {
  ClientOptions options;
  options.job = job.name;
  options.worker = settings.worker;
  options.worker_count = job.rule.workers;
  options.server_count = job.server_count;
  options.shard_size = job.shard_size;
  options.groups = job.AllGroups();
  options.planned_examples = settings.planned_examples;
  options.planned_steps = settings.planned_steps;
  options.push = job.push.codec;
  options.choose = job.push.choose;
  options.candidates = job.push.candidates;
  if (job.push.adaptive.has_value()) {
    options.arms = job.push.adaptive->arms;
    const bool fastest = std::ranges::any_of(options.arms, &AdaptiveSpec::Arm::fastest);
    if (fastest) options.choose = ChoiceRule::kFastest;
  }
  options.works_ahead = true;
  options.pull = job.publish.has_value() ? std::nullopt : std::optional(job.pull_codec);
  options.error_feedback = job.push.error_feedback;
  options.residual_decay = job.push.residual_decay;
  options.warmup = job.push.warmup;
  options.correction = job.push.correction;
  options.gradient_clip = job.push.gradient_clip;
  options.fragments = job.task.local.fragments;
  options.state_dir = settings.state_dir;
  options.start_timeout = job.start_timeout;
  options.wait_for_servers = settings.wait_for_servers;
  options.silence = job.silence;
  if (job.recovery.durability != Durability::kNone) {
    options.server_return = job.recovery.server_return;
  }
  options.lease = job.lease;
  options.drain = job.drain;
  return options;
}

}  // namespace thinwire
