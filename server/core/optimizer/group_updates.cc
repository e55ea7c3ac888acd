#include "server/core/optimizer/group_updates.h"

#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::vector<GroupUpdate>> MakeGroupUpdates(std::span<const GroupSpec> groups,
                                                          const ScheduleSpec& schedule) {
  std::vector<GroupUpdate> updates;
  for (const GroupSpec& group : groups) {
    ASSIGN_OR_RETURN(std::shared_ptr<const Optimizer> optimizer, MakeOptimizer(group.optimizer));
    ASSIGN_OR_RETURN(const Schedule of_group, Schedule::Make(group.ScheduleOf(schedule)));
    updates.push_back({std::move(optimizer), of_group});
  }
  return updates;
}

}  // namespace thinwire
