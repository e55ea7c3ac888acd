// Compares the job of a joining worker with the job of a server.
#ifndef THINWIRE_CONFIG_JOB_DIFFERENCE_H_
#define THINWIRE_CONFIG_JOB_DIFFERENCE_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

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
// present in one job only is a difference, and the text names its number.
std::optional<std::string> JobDifference(const JobConfig& expected, const JobConfig& got,
                                         Compared compared);

// Returns the names of the fields that may differ between processes and are not compared.
std::span<const std::string_view> FieldsNotCompared();

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_DIFFERENCE_H_
