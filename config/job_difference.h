// Compares the job of a joining worker with the job of a server.
#ifndef THINWIRE_CONFIG_JOB_DIFFERENCE_H_
#define THINWIRE_CONFIG_JOB_DIFFERENCE_H_

#include <optional>
#include <string>

#include "proto/job.pb.h"

namespace thinwire {

enum class Compared {
  kAllButTask,  // all settings except `task`: servers and workers must agree on these settings
  kTask,        // the settings in `task`: the workers must agree on these settings
};

// Returns a text with all differences, or nullopt if the jobs do not differ. Example:
//
//   optimization.optimizer differs from the job's (expected sgd, got adam); ...
//
// An absent field equals its default. An unknown field, such as a field of a newer program, that is
// present in one job only is a difference, and the text names its number. The following fields may
// differ between processes and are not compared: device, threads, data_dir, model_file, precision,
// straggler, silence_seconds, checkpoint_seconds, server_return_seconds and report.
std::optional<std::string> JobDifference(const JobConfig& expected, const JobConfig& got,
                                         Compared compared);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_DIFFERENCE_H_
