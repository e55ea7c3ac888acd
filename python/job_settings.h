// Makes the job of a Python worker from a job file and the settings of a Python program. A Python
// program trains a model of its own, so its job has no task.
#ifndef THINWIRE_PYTHON_JOB_SETTINGS_H_
#define THINWIRE_PYTHON_JOB_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/job_spec.h"
#include "config/site_job.h"
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

// The job whose servers a worker joins.
struct PythonJob {
  JobConfig config;  // without `task`
  JobSpec spec;
  // Of a worker of a site: the job in which the site's aggregator is a worker (docs/sites.md).
  std::optional<JobSpec> upper;

  // Returns the job that the job file and the settings describe, whose servers make the updates.
  const JobSpec& described() const { return upper.has_value() ? *upper : spec; }
  // Returns the number of sites; 1 without sites.
  uint32_t site_count() const { return upper.has_value() ? upper->rule.workers : 1; }
};

// Returns the names of the settings that a Python program may give, in the order of proto/job.proto.
std::vector<std::string> JobSettingNames();

// Reads the job file PATH, unless PATH is "", replaces its values by SETTINGS in their order, and
// checks the result. If SITE names one, returns the job of this site. Errors: errors of the job file;
// InvalidArgument with one line per problem, also for settings that need a C++ worker; those of
// SiteJob, also if a setting differs from the job file, which the site's aggregator has.
absl::StatusOr<PythonJob> MakePythonJob(const std::string& path,
                                        const std::vector<JobSetting>& settings,
                                        const LocalStepsSpec& local = {},
                                        const SiteFlags& site = {});

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_JOB_SETTINGS_H_
