// Makes the options of a worker's client from the job and from the settings of the worker's
// process.
#ifndef THINWIRE_CLIENT_OPTIONS_JOB_CLIENT_OPTIONS_H_
#define THINWIRE_CLIENT_OPTIONS_JOB_CLIENT_OPTIONS_H_

#include <cstdint>
#include <string>

#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"

namespace thinwire {

// The settings of a worker's client that JobSpec does not contain.
struct ClientSettings {
  WorkerId worker;
  uint64_t planned_examples = 0;  // examples of all workers in the whole run
  uint64_t planned_steps = 0;     // steps that each worker takes in the whole run
  std::string state_dir;          // path; empty: the worker's state is not saved
  bool wait_for_servers = false;  // ClientOptions::wait_for_servers
};

// Returns the options of a worker's client. REQUIRES: job.Validate() found no problem.
ClientOptions MakeClientOptions(const JobSpec& job, const ClientSettings& settings);

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_OPTIONS_JOB_CLIENT_OPTIONS_H_
