// Setup has the checked settings of a worker, from its job file and its flags.
#ifndef THINWIRE_WORKER_PROCESS_SETUP_H_
#define THINWIRE_WORKER_PROCESS_SETUP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/time/bandwidth_limit.h"
#include "config/field_flags.h"
#include "proto/grpc_credentials.h"
#include "proto/job.pb.h"
#include "worker/batches/sampler.h"
#include "worker/process/worker_flags.h"
#include "worker/trainer/model_output.h"

namespace thinwire {

struct Setup {
  JobConfig config;
  JobSpec spec;
  // The share of the examples that the workers of this job have; a site has a part.
  SiteShare share;
  std::optional<WorkerId> worker;  // nullopt: server 0 chooses the number (--worker auto)
  std::vector<std::string> addresses;
  bool wait_for_servers;
  Credentials credentials;
  BandwidthRates bandwidth;
  std::optional<absl::Duration> delay;  // the value of --delay; nullopt: the job file sets it
  uint32_t steps_per_event;             // N of --log_events every=N; 1: all
  std::string state_dir;
  std::optional<ModelOutputOptions> output;
};

// Reads the job file, applies the flags, and checks the result. Errors: errors of the job file;
// InvalidArgument for flags that do not fit the job.
absl::StatusOr<Setup> MakeSetup(const WorkerFlags& flags, const FieldFlags& field_flags);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_SETUP_H_
