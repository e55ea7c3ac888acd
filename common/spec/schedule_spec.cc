#include "common/spec/schedule_spec.h"

#include <string>

namespace thinwire {
namespace {

constexpr double kLargestPower = 1e6;

}  // namespace

std::ostream& operator<<(std::ostream& out, ScheduleKind kind) {
  return out << kScheduleNames[static_cast<size_t>(kind)];
}

Problems ScheduleSpec::Validate() const {
  Problems problems;
  problems.RequireFloat("learning_rate", learning_rate);
  problems.RequireFraction("warmup", warmup);
  for (size_t i = 0; i < decay_at.size(); ++i) {
    const std::string field = absl::StrCat("decay_at[", i, "]");
    problems.RequireFraction(field, decay_at[i]);
    if (i > 0 && decay_at[i] < decay_at[i - 1]) {
      problems.Add(field, absl::StrCat("out of order (expected at least ", decay_at[i - 1],
                                       ", the entry before, got ", decay_at[i], ")"));
    }
  }
  problems.RequireFraction("decay_factor", decay_factor);
  problems.Require(power >= 0 && power <= kLargestPower, "power", "0 to 1000000", power);
  problems.RequirePositiveFloat("growth_ratio", growth.ratio);
  return problems;
}

std::ostream& operator<<(std::ostream& out, const ScheduleSpec& spec) {
  out << spec.kind << " learning_rate " << spec.learning_rate << " warmup " << spec.warmup;
  if (spec.kind == ScheduleKind::kStep) {
    for (double at : spec.decay_at) out << " decay_at " << at;
    out << " decay_factor " << spec.decay_factor;
  }
  if (spec.kind == ScheduleKind::kPolynomial) out << " power " << spec.power;
  if (spec.grows_batch()) {
    out << " largest_batch " << spec.growth.largest_batch << " growth_ratio " << spec.growth.ratio;
  }
  return out;
}

}  // namespace thinwire
