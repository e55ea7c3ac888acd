#include "experiments/replay/read_positions.h"

#include <algorithm>
#include <map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "experiments/replay/readable_values.h"

namespace thinwire::lab {

absl::StatusOr<std::vector<ReadPosition>> ReadPositionsOf(const std::vector<Event>& events,
                                                          const JobSpec& job, Shard& shard) {
  std::map<Version, size_t> first_events;  // the event that made a version readable
  struct LastPush {
    size_t event;
    Step step;
  };
  std::map<WorkerId, LastPush> last_pushes;
  std::vector<ReadPosition> reads;
  for (size_t i = 0; i < events.size(); ++i) {
    const auto* push = std::get_if<PushEvent>(&events[i]);
    const auto last = push == nullptr ? last_pushes.end() : last_pushes.find(push->worker);
    // A push that was sent again is not the first one of its step.
    if (push != nullptr && (last == last_pushes.end() || push->step > last->second.step)) {
      const auto readable = first_events.find(push->computed_version);
      if (readable == first_events.end()) {
        return absl::FailedPreconditionError(
            absl::StrCat("worker ", push->worker.value, ", step ", push->step.value,
                         ": computed from a version that the shard did not have (version ",
                         push->computed_version.value, ")"));
      }
      // A worker reads for a step only after its push of the step before.
      const size_t least = last == last_pushes.end() ? 0 : last->second.event;
      reads.push_back(
          {.event = std::max(readable->second, least), .worker = push->worker, .step = push->step});
      last_pushes[push->worker] = {i, push->step};
    }
    shard.Apply(events[i]);
    if (shard.seeded()) first_events.emplace(ReadableVersion(shard, job), i);
  }
  std::ranges::stable_sort(reads, {}, &ReadPosition::event);
  return reads;
}

}  // namespace thinwire::lab
