// The flags of a command that calls the servers of a running job.
#ifndef THINWIRE_CLI_RPC_SERVER_FLAGS_H_
#define THINWIRE_CLI_RPC_SERVER_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/command_flags.h"
#include "config/connection_flags.h"
#include "proto/grpc_credentials.h"

namespace thinwire {

// Adds --addresses, --credentials and --insecure, and returns --addresses, which is not required
// unless the caller says so. OWNER: whose certificate it is, such as "an operator's".
Flag AddServerFlags(CommandFlags& command, ConnectionFlags& flags, const std::string& owner);

// Returns the entries of --addresses, for a command that does not know the number of servers.
// Errors: those of ParseAddresses.
absl::StatusOr<std::vector<std::string>> SplitAddresses(const ConnectionFlags& flags);

// Returns the credentials for calls of the servers. Errors: those of SplitAddresses, CheckPlaintext
// and Credentials::Load.
absl::StatusOr<Credentials> LoadCredentials(const ConnectionFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_SERVER_FLAGS_H_
