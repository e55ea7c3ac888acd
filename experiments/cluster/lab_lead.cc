#include "experiments/cluster/lab_lead.h"

#include <algorithm>

#include "server/core/update/gradient_noise.h"

namespace thinwire::lab {

LabLead::LabLead(const JobSpec& job, uint64_t planned_examples)
    : job_(job),
      dealer_(job.rule.workers, job.lease),
      growth_(job.schedule.largest_batch, dealer_) {
  for (uint32_t w = 0; w < job.rule.workers; ++w) workers_.push_back(WorkerId{w});
  growth_.Begin(job.task, planned_examples);
}

std::optional<Deal> LabLead::RoundClosed(std::span<const Shard* const> shards, absl::Duration now) {
  NoiseEstimate noise = shards[0]->noise();
  for (const Shard* shard : shards.subspan(1)) noise += shard->noise();
  Step largest_next;
  for (const Shard* shard : shards) {
    for (const WorkerId worker : workers_) {
      largest_next = std::max(largest_next, shard->next(worker));
    }
  }
  const absl::Time time = absl::UnixEpoch() + now;
  dealer_.Advance(largest_next, time);
  growth_.Update(noise, largest_next, job_.rule);
  // No worker departs.
  std::optional<Deal> deal = dealer_.Propose(
      workers_, /*returning=*/{}, [](WorkerId) { return Step{}; }, time);
  dealer_.Commit();
  return deal;
}

}  // namespace thinwire::lab
