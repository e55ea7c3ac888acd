// Makes a checked job from a job file and flags:
//
//   text -> JobConfig + places      config/job_text.h
//   flags -> JobConfig + places     config/field_flags.h
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

// Returns the checked job of CONFIG. Errors: InvalidArgument with one line per problem, in the
// order of the fields.
absl::StatusOr<JobSpec> CheckJob(const JobConfig& config, const FieldPlaces& places = {});

// Parses WORKER:DELAY, such as "3:50ms". Errors: InvalidArgument "wrong value (expected
// WORKER:DELAY, such as 3:50ms, got x)".
absl::StatusOr<Straggler> ParseStraggler(std::string_view text);

// Splits a list of addresses, such as "a:7000,b:7000". Errors: InvalidArgument that names the first
// entry that is not host:port with a port from 1 to 65535.
absl::StatusOr<std::vector<std::string>> ParseAddresses(std::string_view text);

// Returns true if ADDRESS is host:port or [::1]:port with a port from LEAST_PORT to 65535.
bool IsAddress(std::string_view address, int least_port);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_H_
