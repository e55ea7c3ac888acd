// Compares the job of a joining worker with the job of a server.
#ifndef THINWIRE_CONFIG_JOB_DIFFERENCE_H_
#define THINWIRE_CONFIG_JOB_DIFFERENCE_H_

#include <optional>
#include <string>

#include "proto/job.pb.h"

namespace thinwire {

enum class Compared {
  kAllButTask,  // what servers and workers share
  kTask,        // what workers share
};

// Returns every difference, or nullopt if there is none:
//
//   optimization.optimizer differs from the job's (expected sgd, got adam); ...
//
// A field that is absent equals its default. A field that this program does not know differs from
// its absence and is named by its number. Not compared, because they may differ between processes:
// device, threads, data_dir, model_file, precision, straggler, silence_seconds and report.
std::optional<std::string> JobDifference(const JobConfig& expected, const JobConfig& got,
                                         Compared compared);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_DIFFERENCE_H_
