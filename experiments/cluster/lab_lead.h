// LabLead is the lead of a run in virtual time. It chooses the rule (`auto_backup`, `auto_slack`) and
// the batch (`schedule: noise_scale`) with the parts of a real lead, so a change begins after as many
// seconds and steps. Not thread-safe.
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
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/core/update/gradient_noise.h"
#include "server/edge/lead/dealer.h"
#include "server/edge/lead/growth_lead.h"
#include "server/edge/lead/wait_tuner.h"
#include "server/edge/model/step_times.h"

namespace thinwire::lab {

// Returns the noise of the gradients of a model with these shards. REQUIRES: there is a shard.
NoiseEstimate NoiseOf(std::span<const Shard* const> shards);

class LabLead {
 public:
  // PLANNED_EXAMPLES are those of all epochs.
  LabLead(const JobSpec& job, uint64_t planned_examples);

  // Return whether the job has one of the settings, so that the function below must be called.
  bool chooses_rule() const { return tuner_.enabled(); }
  bool grows_batch() const { return growth_.has_value(); }

  // Call after every event of FIRST, the first shard, with the virtual time. Returns the change of
  // the rule if the event is followed by one.
  std::optional<RuleEvent> Applied(const Event& event, const Effects& effects, const Shard& first,
                                   absl::Duration now);
  // Call after every round of SHARDS, the shards of server 0. Returns the next deal if the batch
  // grows.
  std::optional<Deal> RoundClosed(std::span<const Shard* const> shards, absl::Duration now);

 private:
  // Tells the dealer the progress of SHARDS, and returns the largest `next` (docs/glossary.md).
  Step Advance(std::span<const Shard* const> shards, absl::Time now);

  std::vector<WorkerId> workers_;
  StepTimes step_times_;
  WaitTuner tuner_;
  Dealer dealer_;
  std::optional<GrowthLead> growth_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_LAB_LEAD_H_
