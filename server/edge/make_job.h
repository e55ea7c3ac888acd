// Makes the job of a server process from its checked description.
#ifndef THINWIRE_SERVER_EDGE_MAKE_JOB_H_
#define THINWIRE_SERVER_EDGE_MAKE_JOB_H_

#include <memory>
#include <memory_resource>
#include <optional>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/spec/job_spec.h"
#include "proto/job.pb.h"
#include "server/edge/job.h"

namespace thinwire {

// The settings of one server process.
struct ServerSettings {
  ServerId server;
  uint32_t thread_count = 0;  // that run the shards; 0: one per core
  Epoch epoch;                // of this start of the server
  // The job as every worker must know it; nullopt: workers are not compared.
  std::optional<JobConfig> config;
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // JobOptions::memory
};

// Returns a job that no worker has joined. CLOCK and the memory of SETTINGS must outlive it.
// Errors: InvalidArgument with the problems of SPEC, or for a server number that SPEC does not
// have.
absl::StatusOr<std::unique_ptr<Job>> MakeJob(const JobSpec& spec, ServerSettings settings,
                                             Clock& clock);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_MAKE_JOB_H_
