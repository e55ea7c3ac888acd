// GroupUpdate is the optimizer and the schedule of one parameter group (common/spec/group_spec.h).
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_GROUP_UPDATES_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_GROUP_UPDATES_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/group_spec.h"
#include "common/spec/schedule_spec.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"

namespace thinwire {

// Immutable and thread-safe.
struct GroupUpdate {
  std::shared_ptr<const Optimizer> optimizer;
  Schedule schedule;
};

// Returns the update of each group in GROUPS. SCHEDULE is the schedule of the job. Errors:
// InvalidArgument with the problems of the specs.
absl::StatusOr<std::vector<GroupUpdate>> MakeGroupUpdates(std::span<const GroupSpec> groups,
                                                          const ScheduleSpec& schedule);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_GROUP_UPDATES_H_
