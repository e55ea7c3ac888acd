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
  kNone = 0,  // a server that ends loses its state
  kLog = 2,   // every event is on disk before any of its effects leaves the server
};

// JobSpec::Validate checks the durations.
struct RecoverySpec {
  Durability durability = Durability::kNone;
  absl::Duration checkpoint_interval = absl::Seconds(60);  // between two checkpoints of a server
  absl::Duration server_return = absl::Seconds(600);  // workers wait this long for a lost server

  bool operator==(const RecoverySpec&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const RecoverySpec& spec) {
    if (spec.durability == Durability::kNone) return out << "durability none";
    return out << "durability log, a checkpoint every " << spec.checkpoint_interval;
  }
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_RECOVERY_SPEC_H_
