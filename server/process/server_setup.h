// ServerSetup has the checked settings of a server process, from its job file and its flags.
#ifndef THINWIRE_SERVER_PROCESS_SERVER_SETUP_H_
#define THINWIRE_SERVER_PROCESS_SERVER_SETUP_H_

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

struct ServerSetup {
  ServerFlags flags;
  JobConfig config;
  JobSpec spec;
  ServerId server;
  std::vector<std::string> addresses;  // of all servers, by number; empty: not known
  std::string listen;
  Credentials credentials;
  BandwidthRates bandwidth;
  bool insecure = false;  // other machines reach this server without credentials
};

// Reads the job file and checks that the flags fit it. Errors: errors of the job file; those of
// Credentials::Load; InvalidArgument for a flag, which the message names.
absl::StatusOr<ServerSetup> MakeServerSetup(const ServerFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROCESS_SERVER_SETUP_H_
