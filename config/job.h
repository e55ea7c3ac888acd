// Makes a checked job from a job file and flags:
//
//   text -> JobConfig + places      config/job_text.h
//   flags -> JobConfig + places     config/field_flags.h
//   recipe -> settings              config/recipes.h
//   JobConfig -> JobSpec            CheckJob, below
//
// CheckJob reports all problems of a job together, each with the place where its field was set:
//
//   job.textproto:7:5: density: out of range (expected above 0 and at most 1, got 2)
//   --slack: only valid with mode: ssp (got mode: sync)
#ifndef THINWIRE_CONFIG_JOB_H_
#define THINWIRE_CONFIG_JOB_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/spec/job_spec.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// A job runs as real processes or in virtual time (docs/experiments.md), which supports other
// settings.
enum class JobUse { kProcesses, kVirtualTime };

// Validates CONFIG and returns its job. Errors: InvalidArgument with one line per problem, in the
// order of the fields.
absl::StatusOr<JobSpec> CheckJob(const JobConfig& config, const FieldPlaces& places = {},
                                 JobUse use = JobUse::kProcesses);

// Parses WORKER:DELAY, such as "3:50ms". Errors: InvalidArgument "wrong value (expected
// WORKER:DELAY, such as 3:50ms, got x)".
absl::StatusOr<Straggler> ParseStraggler(std::string_view text);

// Returns one line for each warning about JOB, the job of CONFIG, with the place where its field
// was set: settings that are valid but without benefit (JobSpec::Warnings), or with which training
// collapsed (stability.h).
std::vector<std::string> WarningsOf(const JobConfig& config, const JobSpec& job,
                                    const FieldPlaces& places = {});

// Returns one line for each file or folder of TASK that this machine does not have.
std::vector<std::string> MissingFiles(const TaskSpec& task, const FieldPlaces& places = {});

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_H_
