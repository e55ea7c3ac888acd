// MeasureDisk measures how fast a folder's disk stores what a server writes to its event log.
#ifndef THINWIRE_SERVER_DURABLE_DISK_SPEED_H_
#define THINWIRE_SERVER_DURABLE_DISK_SPEED_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "server/durable/files.h"

namespace thinwire {

struct DiskSpeed {
  double bytes_per_second = 0;  // writing and flushing 1 MiB at a time
  absl::Duration flush;         // the median time of writing and flushing 4 KiB
};

// Writes 16 MiB to a temporary file in FOLDER, which exists, and removes the file. Errors: those of
// the file system.
absl::StatusOr<DiskSpeed> MeasureDisk(Files& files, const std::string& folder, Clock& clock);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_DISK_SPEED_H_
