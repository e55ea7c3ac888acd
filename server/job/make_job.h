// Creates the Job of a server process from the specs of the job.
#ifndef THINWIRE_SERVER_JOB_MAKE_JOB_H_
#define THINWIRE_SERVER_JOB_MAKE_JOB_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "common/time/trace.h"
#include "proto/job.pb.h"
#include "server/job/job.h"
#include "server/protocols/peers.h"
#include "server/protocols/relay/round_relay.h"

namespace thinwire {

// The settings of one server process, in addition to the JobSpec.
struct ServerSettings {
  ServerId server;
  Epoch epoch;   // identifies this start of the server process; larger than those of earlier starts
  RunId run{1};  // the run that server 0 begins; drawn at random by `main`
  std::string token_key;  // the key of this run's tokens; drawn at random by `main`
  uint64_t memory_budget_bytes = std::numeric_limits<uint64_t>::max();  // see JobOptions
  // The job configuration that every worker must have. nullopt: the server does not compare
  // configurations.
  std::optional<JobConfig> config;
  // The server's state on disk. Set if and only if the job's durability is not none.
  std::optional<DurableOptions> durable;
  bool insecure = false;                                                 // see JobOptions
  std::string page;                                                      // see JobOptions
  std::function<void()> drained = [] {};                                 // see JobOptions
  Tracer* tracer = nullptr;                                              // see JobOptions
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();  // see JobOptions
  ShardObserver* observer = nullptr;                                     // see JobOptions
  RoundRelay* relay = nullptr;                                           // see JobOptions
  Step relayed_until;                                                    // see JobOptions
};

// Returns a job, which has recovered the state in settings.durable. CLOCK, EXECUTORS and settings.memory
// must outlive the job. PEERS: see Job. Errors: InvalidArgument with the problems of SPEC, or if
// settings.server is not a server of SPEC, or if server 0 of several servers has no PEERS; errors
// of Job::Recover.
absl::StatusOr<std::unique_ptr<Job>> MakeJob(const JobSpec& spec, ServerSettings settings,
                                             Clock& clock, const JobExecutors& executors,
                                             std::unique_ptr<Peers> peers = nullptr);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_MAKE_JOB_H_
