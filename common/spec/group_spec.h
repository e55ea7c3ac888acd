// GroupSpec contains the settings of the tensors whose names match a pattern.
//
//   parameter_group { match: "*.bias" weight_decay: 0 }
//
// A list of groups (AllGroups() of JobSpec) begins with group 0, which contains every tensor that
// no other group matches. The first match among the other groups wins. Immutable.
#ifndef THINWIRE_COMMON_SPEC_GROUP_SPEC_H_
#define THINWIRE_COMMON_SPEC_GROUP_SPEC_H_

#include <optional>
#include <ostream>
#include <string>

#include "common/codec/table.h"
#include "common/spec/optimizer_spec.h"
#include "common/spec/schedule_spec.h"

namespace thinwire {

struct GroupSpec {
  std::string match;  // a pattern of fnmatch(3): *, ? and [ab]
  double learning_rate_factor = 1;
  OptimizerSpec optimizer;
  std::optional<CodecSpec> push;  // the codec of gradients; nullopt: the job's codec
  bool apart = false;             // the tensors share no shards (JobSpec::AllGroups)

  // Checks the settings of a group other than group 0. PLACE is the group's place in the job, such
  // as "parameter_group[0]". JOB and SCHEDULE are the job's settings.
  Problems Validate(const std::string& place, const OptimizerSpec& job,
                    const ScheduleSpec& schedule) const;
  // Returns SCHEDULE, the job's schedule, with the learning rate of this group.
  ScheduleSpec ScheduleOf(ScheduleSpec schedule) const;

  bool operator==(const GroupSpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const GroupSpec& group);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_GROUP_SPEC_H_
