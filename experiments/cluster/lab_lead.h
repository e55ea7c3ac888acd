// LabLead is the lead of a run in virtual time with `schedule: noise_scale`. It announces larger
// batches with the parts of a real lead (server/edge/lead/deal_lead.h), so a deal begins after as
// many seconds and steps. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_LAB_LEAD_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_LAB_LEAD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/ids.h"
#include "common/spec/job_spec.h"
#include "proto/control.pb.h"
#include "server/core/shard.h"
#include "server/edge/lead/dealer.h"
#include "server/edge/lead/growth_lead.h"

namespace thinwire::lab {

class LabLead {
 public:
  // JOB must outlive this object. PLANNED_EXAMPLES are those of all epochs.
  LabLead(const JobSpec& job, uint64_t planned_examples);

  // Call after every round of SHARDS, the shards of server 0, with the virtual time. Returns the
  // next deal if the batch grows.
  std::optional<Deal> RoundClosed(std::span<const Shard* const> shards, absl::Duration now);

 private:
  const JobSpec& job_;
  std::vector<WorkerId> workers_;
  Dealer dealer_;
  GrowthLead growth_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LAB_LEAD_H_
