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
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace thinwire {

// p. REQUIRES: planned_examples > 0.
double PlanProgress(uint64_t examples, uint64_t planned_examples);

struct ScheduleSpec {
  std::string name = "constant";
  double learning_rate = 0.01;
  double warmup = 0;
  std::vector<double> decay_at = {};
  double decay_factor = 0.1;
  double power = 1;

  bool operator==(const ScheduleSpec&) const = default;
};

// Immutable.
class Schedule {
 public:
  // Errors: InvalidArgument for an unknown name (lists those there are) or a number out of its
  // range.
  static absl::StatusOr<Schedule> Make(const ScheduleSpec& spec);

  // The rate for the update that follows EXAMPLES accepted ones. PLANNED_EXAMPLES 0: progress stays
  // 0 and there is no warm-up.
  double Rate(uint64_t examples, uint64_t planned_examples) const;

 private:
  enum class Kind { kConstant, kStep, kPolynomial, kCosine };

  Schedule(Kind kind, const ScheduleSpec& spec) : kind_(kind), spec_(spec) {}

  Kind kind_;
  ScheduleSpec spec_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SCHEDULE_H_
