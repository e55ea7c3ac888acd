// The options of a worker's client, from the job and the settings of the worker's process.
#ifndef THINWIRE_WORKER_CLIENT_OPTIONS_H_
#define THINWIRE_WORKER_CLIENT_OPTIONS_H_

#include <cstdint>
#include <string>

#include "client/options/client_options.h"
#include "common/ids.h"
#include "common/spec/job_spec.h"

namespace thinwire {

// What the options depend on besides the job.
struct ClientSettings {
  WorkerId worker;
  uint64_t planned_examples = 0;  // of the whole run, by all workers
  uint64_t planned_steps = 0;     // of the whole run, by each worker
  std::string residual_file;      // ClientOptions::residual_file
};

// REQUIRES: job.Validate() found no problem.
ClientOptions MakeClientOptions(const JobSpec& job, const ClientSettings& settings);

}  // namespace thinwire

#endif  // THINWIRE_WORKER_CLIENT_OPTIONS_H_
