#include "server/core/optimizer/schedule.h"

#include <algorithm>

#include "common/base/repeatable_math.h"
#include "common/base/status_macros.h"

namespace thinwire {
double PlanProgress(uint64_t examples, uint64_t planned_examples) {
  if (examples >= planned_examples) return 1;
  return static_cast<double>(examples) / static_cast<double>(planned_examples);
}

absl::StatusOr<Schedule> Schedule::Make(const ScheduleSpec& spec) {
  RETURN_IF_ERROR(spec.Validate().ToStatus());
  return Schedule(spec);
}

double Schedule::Rate(uint64_t examples, uint64_t planned_examples) const {
  const double p = planned_examples == 0 ? 0 : PlanProgress(examples, planned_examples);
  if (planned_examples != 0 && p < spec_.warmup) return spec_.learning_rate * p / spec_.warmup;
  switch (spec_.kind) {
    case ScheduleKind::kConstant:
    case ScheduleKind::kNoiseScale:
      break;
    case ScheduleKind::kStep: {
      const auto passed = std::count_if(spec_.decay_at.begin(), spec_.decay_at.end(),
                                        [p](double at) { return at <= p; });
      return spec_.learning_rate * IntegerPower(spec_.decay_factor, passed);
    }
    case ScheduleKind::kPolynomial:
      return spec_.learning_rate * Power(1 - p, spec_.power);
    case ScheduleKind::kCosine:
      return spec_.learning_rate * HalfCosine(p);
  }
  return spec_.learning_rate;
}

}  // namespace thinwire
