// Makes the job of a Python worker from a job file and the settings of a Python program. A Python
// program trains a model of its own, so its job has no task.
#ifndef THINWIRE_PYTHON_JOB_SETTINGS_H_
#define THINWIRE_PYTHON_JOB_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/job_spec.h"
#include "proto/job.pb.h"

namespace thinwire {

// A value for one setting of proto/job.proto, such as {"decay_at", {"0.5", "0.75"}, "decay_at"}. A
// repeated field may also have one text with all its values, separated by commas. The values of
// parameter_group are the fields of one group each: "match: '*.bias' weight_decay: 0".
struct JobSetting {
  std::string name;
  std::vector<std::string> values;  // several only for a repeated field
  std::string place;                // begins messages about the value: "THINWIRE_DENSITY"
};

struct PythonJob {
  JobConfig config;  // without `task`
  JobSpec spec;
};

// Returns the names of the settings that a Python program may give, in the order of proto/job.proto.
std::vector<std::string> JobSettingNames();

// Reads the job file PATH, unless PATH is "", replaces its values by SETTINGS in their order, and
// checks the result. Errors: errors of the job file; InvalidArgument with one line per problem,
// also for settings that need a C++ worker.
absl::StatusOr<PythonJob> MakePythonJob(const std::string& path,
                                        const std::vector<JobSetting>& settings,
                                        const LocalStepsSpec& local = {});

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_JOB_SETTINGS_H_
