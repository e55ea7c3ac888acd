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

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "config/places.h"
#include "proto/job.pb.h"

namespace thinwire {

// A job runs as real processes or in virtual time (docs/experiments.md), which supports other
// settings.
enum class JobUse { kProcesses, kVirtualTime };

// Returns the consistency rule of C, which may be invalid (Rule::Validate).
Rule RuleOf(const Consistency& c);

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

// Splits the value of --addresses, such as "a:7000,b:7000". Errors: InvalidArgument that names the
// first entry that is given twice or is not host:port with a port from 1 to 65535, or the number of
// entries if it is not SERVER_COUNT. The port of server OWN may be 0.
absl::StatusOr<std::vector<std::string>> ParseAddresses(std::string_view text,
                                                        uint32_t server_count,
                                                        std::optional<ServerId> own = std::nullopt);

// Returns true if ADDRESS is host:port or [::1]:port with a port from LEAST_PORT to 65535.
bool IsAddress(std::string_view address, int least_port);

// Returns whether ADDRESS (host:port) is reachable from this machine only.
bool IsLoopback(std::string_view address);

// Checks that a process speaks plaintext with other machines only if it may: every process without
// credentials, at both ends of a connection, needs --insecure for an address that is not
// IsLoopback. ADDRESSES is the value of FLAG. Errors: InvalidArgument for the first such address,
// and for --insecure together with credentials.
absl::Status CheckPlaintext(const std::string& flag, const std::vector<std::string>& addresses,
                            bool has_credentials, bool insecure);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_JOB_H_
