#include "common/spec/group_spec.h"

namespace thinwire {

Problems GroupSpec::Validate(const std::string& place, const OptimizerSpec& job,
                             const ScheduleSpec& schedule) const {
  Problems problems;
  if (match.empty()) {
    problems.Add(place + ".match", "no pattern (expected one such as \"*.bias\", got \"\")");
  }
  problems.RequireFloat(place + ".learning_rate_factor", learning_rate_factor);
  if (learning_rate_factor > 1) {
    problems.RequireFloat(place + ".learning_rate_factor",
                          learning_rate_factor * schedule.learning_rate);
  }
  // A value that is the job's is a problem of the job.
  if (optimizer.weight_decay != job.weight_decay) {
    problems.RequireFloat(place + ".weight_decay", optimizer.weight_decay);
  }
  if (push.has_value() && HasDensity(push->id)) {
    problems.RequireDensity(place + ".density", push->density);
  }
  return problems;
}

ScheduleSpec GroupSpec::ScheduleOf(ScheduleSpec schedule) const {
  schedule.learning_rate *= learning_rate_factor;
  return schedule;
}

std::ostream& operator<<(std::ostream& out, const GroupSpec& group) {
  out << group.match << ": learning_rate_factor " << group.learning_rate_factor << ", "
      << group.optimizer;
  if (!group.push.has_value()) return out;
  out << ", push " << group.push->id;
  if (HasDensity(group.push->id)) out << " density " << group.push->density;
  return out;
}

}  // namespace thinwire
