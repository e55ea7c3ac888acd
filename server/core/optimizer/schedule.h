// Schedule: the learning rate as a function of the examples a shard has accepted, so that it means
// the same in every mode and for any number of workers.
//
//   progress p = examples / planned_examples, held to [0, 1]
//   p < warmup:  rate * p / warmup, else
//   constant     rate
//   step         rate * decay_factor ^ (how many of decay_at are <= p)
//   polynomial   rate * (1 - p)^power
//   cosine       rate * (1 + cos(pi p)) / 2
//
// cosine: Loshchilov and Hutter 2017, section 3, without restarts. docs/optimizers.md draws them.
#ifndef THINWIRE_SERVER_CORE_SCHEDULE_H_
#define THINWIRE_SERVER_CORE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/spec/schedule_spec.h"

namespace thinwire {

// p. REQUIRES: planned_examples > 0.
double PlanProgress(uint64_t examples, uint64_t planned_examples);

// Immutable.
class Schedule {
 public:
  // Errors: InvalidArgument with the problems of SPEC.
  static absl::StatusOr<Schedule> Make(const ScheduleSpec& spec);

  // The rate for the update that follows EXAMPLES accepted ones. PLANNED_EXAMPLES 0: progress stays
  // 0 and there is no warm-up.
  double Rate(uint64_t examples, uint64_t planned_examples) const;

 private:
  explicit Schedule(const ScheduleSpec& spec) : spec_(spec) {}

  ScheduleSpec spec_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SCHEDULE_H_
