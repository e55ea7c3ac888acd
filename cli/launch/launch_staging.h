// The files that `thinwire launch` makes on this machine for the others: the job, the programs to copy,
// and the credentials of each process.
#ifndef THINWIRE_CLI_LAUNCH_LAUNCH_STAGING_H_
#define THINWIRE_CLI_LAUNCH_LAUNCH_STAGING_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/hosts/hosts_file.h"
#include "cli/launch/launch_command.h"
#include "cli/process/temp_dir.h"
#include "proto/grpc_credentials.h"
#include "proto/job.pb.h"

namespace thinwire {

// Makes the folders DIR/host-N that SshHosts::Prepare() copies. NOW is the first time of new
// certificates. Errors: a program or certificate
// that is missing or wrong; errors of the file system.
absl::Status StageHosts(const LaunchCommand& command, const JobConfig& config,
                        const std::vector<Host>& hosts, const TempDir& dir, absl::Time now);

// Returns the credentials with which this process reads the status of the servers. Errors: as
// StageHosts.
absl::StatusOr<Credentials> OwnCredentials(const LaunchCommand& command, const JobConfig& config,
                                           const TempDir& dir, absl::Time now);

}  // namespace thinwire

#endif  // THINWIRE_CLI_LAUNCH_LAUNCH_STAGING_H_
