#include "experiments/cluster/lab_lead.h"

#include <algorithm>

namespace thinwire::lab {

NoiseEstimate NoiseOf(std::span<const Shard* const> shards) {
  std::vector<NoiseEstimate> noise;
  for (const Shard* shard : shards) noise.push_back(shard->noise());
  return SumOfNoise(noise);
}

LabLead::LabLead(const JobSpec& job, uint64_t planned_examples)
    : step_times_(job.rule.workers),
      tuner_(job.auto_rule ? std::optional(job.rule.fold) : std::nullopt),
      dealer_(job.rule.workers, job.lease) {
  for (uint32_t w = 0; w < job.rule.workers; ++w) workers_.push_back(WorkerId{w});
  if (!job.schedule.grows_batch()) return;
  growth_.emplace(job.schedule.growth, dealer_);
  growth_->Begin(job.task, planned_examples);
}

Step LabLead::Advance(std::span<const Shard* const> shards, absl::Time now) {
  Step largest_next;
  for (const Shard* shard : shards) {
    for (const WorkerId worker : workers_) {
      largest_next = std::max(largest_next, shard->next(worker));
    }
  }
  dealer_.Advance(largest_next, now);
  return largest_next;
}

std::optional<RuleEvent> LabLead::Applied(const Event& event, const Effects& effects,
                                          const Shard& first, absl::Duration now) {
  const absl::Time time = absl::UnixEpoch() + now;
  step_times_.Record(event, effects, time);
  const Shard* const shards[] = {&first};
  Advance(shards, time);
  if (!tuner_.Due(first.frontier()) || first.next_rule().has_value()) return std::nullopt;
  const auto chosen = tuner_.Choose(first.rule(), first.frontier(), step_times_, first.noise());
  if (!chosen.has_value()) return std::nullopt;
  return RuleEvent{chosen->rule, dealer_.StepAhead()};
}

std::optional<Deal> LabLead::RoundClosed(std::span<const Shard* const> shards, absl::Duration now) {
  const absl::Time time = absl::UnixEpoch() + now;
  growth_->Update(NoiseOf(shards), Advance(shards, time), shards[0]->rule());
  // No worker departs.
  std::optional<Deal> deal = dealer_.Propose(
      workers_, /*returning=*/{}, [](WorkerId) { return Step{}; }, time);
  dealer_.Commit();
  return deal;
}

}  // namespace thinwire::lab
