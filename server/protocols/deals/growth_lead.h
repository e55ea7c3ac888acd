// GrowthLead is the lead's part in the growth of the batch with `schedule: noise_scale`. It passes
// the measured noise of the lead's own shards to BatchGrowth, which decides, and lets the Dealer
// announce twice as many accumulated batches with its next deal.
//
//   noise of the shards -> BatchGrowth::Doubles -> Dealer::Grow -> next deal
//
// An update has the examples of the pushes that close a round: those of all members, or fewer with
// backup workers. If the number of members changes, they take the same batches together. The wish
// for workers is the number of members of which each takes one batch. Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_DEALS_GROWTH_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_DEALS_GROWTH_LEAD_H_

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "common/spec/task_spec.h"
#include "proto/control.pb.h"
#include "server/core/update/batch_growth.h"
#include "server/core/update/gradient_noise.h"
#include "server/protocols/state/dealer.h"

namespace thinwire {

class GrowthLead {
 public:
  // DEALER must outlive this object.
  GrowthLead(const GrowthSpec& spec, Dealer& dealer) : spec_(spec), dealer_(dealer) {}

  // Sets the task of the workers, unless an earlier call has set it. PLANNED_EXAMPLES are those of
  // all epochs. REQUIRES: TASK is valid.
  void Begin(const TaskSpec& task, uint64_t planned_examples);
  bool begun() const { return growth_.has_value(); }

  // Decides whether the batch doubles, and returns it. NOISE has the sums over the lead's shards,
  // LARGEST_NEXT is the largest `next` of all workers (docs/glossary.md), RULE is the job's.
  // REQUIRES: begun().
  bool Update(const NoiseEstimate& noise, Step largest_next, const Rule& rule);
  // Returns the examples of an update in force at the last Update.
  uint64_t batch() const { return batch_; }

  // Sets the batch in force at the last Update, and the wish for workers.
  void FillIn(StatusReply& reply) const;

 private:
  // Returns the largest number of batches that a worker takes in a step.
  uint32_t MostBatches() const;

  const GrowthSpec spec_;
  Dealer& dealer_;
  TaskSpec task_;
  uint64_t epoch_examples_ = 0;
  std::optional<BatchGrowth> growth_;
  // At the last Update.
  uint32_t accumulate_ = 0;
  uint64_t batch_ = 0;
  uint32_t wished_workers_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_DEALS_GROWTH_LEAD_H_
