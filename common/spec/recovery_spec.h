// RecoverySpec describes what a server keeps on disk, and how long workers wait for a lost server
// (docs/recovery.md). Immutable.
#ifndef THINWIRE_COMMON_SPEC_RECOVERY_SPEC_H_
#define THINWIRE_COMMON_SPEC_RECOVERY_SPEC_H_

#include <cstdint>
#include <ostream>

#include "absl/time/time.h"

namespace thinwire {

// The numbers are those of Recovery.Durability in proto/job.proto.
enum class Durability : uint8_t {
  kNone = 0,        // a server that ends loses its state
  kCheckpoint = 1,  // a server that ends loses the steps since its last checkpoint
  kLog = 2,         // every event is on disk before any of its effects leaves the server
};

// The checkpoints that a server keeps (docs/checkpoint.md#writing).
struct RetentionSpec {
  uint32_t newest_count = 2;  // 1 to 1000
  uint64_t every = 0;  // also the first at or after each multiple of this number of steps; 0: none
  uint32_t best_count = 0;  // also this number of checkpoints with the best tests, at most 1000

  bool operator==(const RetentionSpec&) const = default;
};

// JobSpec::Validate checks the durations and the number of checkpoints.
struct RecoverySpec {
  Durability durability = Durability::kNone;
  // The time between two checkpoints of a server. 0: chosen during the run from the cost of a
  // checkpoint and `failure_interval`.
  absl::Duration checkpoint_interval = absl::Seconds(60);
  absl::Duration failure_interval = absl::Hours(1);  // the mean time between two losses of a server
  absl::Duration server_return = absl::Seconds(600);  // workers wait this long for a lost server
  bool keep_log = false;                              // kLog: no event is ever removed from the log
  RetentionSpec retention;

  bool operator==(const RecoverySpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const RecoverySpec& spec) {
    if (spec.durability == Durability::kNone) return out << "durability none";
    out << "durability " << (spec.durability == Durability::kLog ? "log" : "checkpoint");
    if (spec.checkpoint_interval > absl::ZeroDuration()) {
      return out << ", a checkpoint every " << spec.checkpoint_interval;
    }
    return out << ", a server is lost every " << spec.failure_interval;
  }
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_RECOVERY_SPEC_H_
