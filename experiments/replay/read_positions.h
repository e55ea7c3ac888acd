// ReadPositions finds out from which state of each shard every recorded gradient was computed.
//
// A recorded push names the version of its shard from which its worker has computed. Another
// setting, such as a staleness policy, changes the versions but not the events, so a replay needs
// the position in the sequence of events instead: the event after which the worker could first read
// that version for its step.
#ifndef THINWIRE_EXPERIMENTS_REPLAY_READ_POSITIONS_H_
#define THINWIRE_EXPERIMENTS_REPLAY_READ_POSITIONS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "experiments/replay/recording.h"
#include "server/core/shard.h"

namespace thinwire::lab {

// WORKER reads the shard for STEP after event number `event`.
struct ReadPosition {
  size_t event = 0;
  WorkerId worker;
  Step step;

  bool operator==(const ReadPosition&) const = default;
};

// Returns the reads of the shard whose events are EVENTS, in ascending order of the events. SHARD
// is a new shard of the recorded JOB, which then applies all EVENTS. Errors: FailedPrecondition if
// a push names a version that the shard did not have.
absl::StatusOr<std::vector<ReadPosition>> ReadPositionsOf(const std::vector<Event>& events,
                                                          const JobSpec& job, Shard& shard);

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_REPLAY_READ_POSITIONS_H_
