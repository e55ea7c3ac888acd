// Schedule computes the learning rate from the number of examples that a shard has accepted. A
// schedule therefore does not depend on the consistency mode or the number of workers.
//
//   progress p = examples / planned_examples, clamped to [0, 1]
//   warm-up      rate * p / warmup while p < warmup; afterwards one of:
//   constant     rate
//   noise_scale  rate; the batch of an update grows instead (server/core/update/batch_growth.h)
//   step         rate * decay_factor ^ (number of elements of decay_at that are <= p)
//   polynomial   rate * (1 - p)^power
//   cosine       rate * (1 + cos(pi p)) / 2
//
// The cosine schedule is that of Loshchilov and Hutter 2017, section 3, without restarts.
// docs/schedules.md shows plots.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_SCHEDULE_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/spec/schedule_spec.h"

namespace thinwire {

// Returns the completed fraction of the planned examples, from 0 to 1. REQUIRES: planned_examples >
// 0.
double PlanProgress(uint64_t examples, uint64_t planned_examples);

// Immutable.
class Schedule {
 public:
  // Creates the schedule that SPEC describes. Errors: InvalidArgument with the problems of SPEC.
  static absl::StatusOr<Schedule> Make(const ScheduleSpec& spec);

  // Returns the learning rate of the next update after EXAMPLES accepted examples. If
  // PLANNED_EXAMPLES is 0, the progress stays 0 and there is no warm-up.
  double Rate(uint64_t examples, uint64_t planned_examples) const;

 private:
  explicit Schedule(const ScheduleSpec& spec) : spec_(spec) {}

  ScheduleSpec spec_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_SCHEDULE_H_
