// ServerSetup has the checked settings of a server process, from its job file and its flags.
#ifndef THINWIRE_SERVER_PROCESS_SERVER_SETUP_H_
#define THINWIRE_SERVER_PROCESS_SERVER_SETUP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/time/bandwidth_limit.h"
#include "proto/grpc_credentials.h"
#include "proto/job.pb.h"
#include "server/process/process_flags.h"

namespace thinwire {

// The job in which an aggregator is a worker.
struct UpperJob {
  JobConfig config;
  JobSpec spec;
  WorkerId worker;
  std::vector<std::string> addresses;
  Credentials credentials;
};

// In an aggregator, all members except `upper` describe the site's own job.
struct ServerSetup {
  ServerFlags flags;
  JobConfig config;
  JobSpec spec;
  ServerId server;
  std::vector<std::string> addresses;  // of all servers, by number; empty: not known
  std::string listen;
  Credentials credentials;
  BandwidthRates bandwidth;
  bool insecure = false;          // other machines reach this server without credentials
  std::optional<UpperJob> upper;  // set in an aggregator
};

// Reads the job file and checks that the flags fit it. Errors: errors of the job file; those of
// Credentials::Load; InvalidArgument for a flag, which the message names.
absl::StatusOr<ServerSetup> MakeServerSetup(const ServerFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROCESS_SERVER_SETUP_H_
