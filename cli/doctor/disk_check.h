// Compares the speed of a disk with the gradients that `durability: log` writes to it.
#ifndef THINWIRE_CLI_DOCTOR_DISK_CHECK_H_
#define THINWIRE_CLI_DOCTOR_DISK_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "server/durable/disk_speed.h"
#include "server/durable/files.h"

namespace thinwire {

// Returns the number of values of the model whose state is in DIR; nullopt if there is none.
std::optional<uint64_t> ValueCountIn(Files& files, const std::string& dir);

// Measures the disk of DIR for a fraction of a second. DIR may be absent; then its parent is
// measured. Errors: those of the file system.
absl::StatusOr<DiskSpeed> MeasureStateDisk(const std::string& dir, Files& files, Clock& clock);

// Returns a warning if the disk of the folder DIR, which has SPEED, is slower than a wire of
// 1 Gbit/s into a server. VALUE_COUNT: the number of the model's values, if it is known.
std::optional<std::string> DiskWarning(const JobSpec& job, const std::string& dir,
                                       const DiskSpeed& speed, std::optional<uint64_t> value_count);

// Measures the disk of DIR as MeasureStateDisk does and returns the warning, if any. If DIR is the
// state directory of a run, the warning is about its model. Does nothing without `durability: log`.
// Errors: those of the file system.
absl::StatusOr<std::optional<std::string>> CheckDisk(const JobSpec& job, const std::string& dir,
                                                     Files& files, Clock& clock);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_DISK_CHECK_H_
