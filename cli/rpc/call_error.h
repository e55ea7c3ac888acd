// CallError makes the error of a call to a server readable.
#ifndef THINWIRE_CLI_RPC_CALL_ERROR_H_
#define THINWIRE_CLI_RPC_CALL_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "proto/grpc_credentials.h"

namespace grpc {
class Status;
}

namespace thinwire {

// Returns the name of a server in messages: "server 1 (10.0.0.2:7000)".
std::string ServerName(ServerId server, const std::string& address);

// Returns STATUS with the name of the server. If the connection failed as it does with missing or
// wrong credentials, the message says so; FailedPrecondition if the server belongs to another job
// than the credentials. CREDENTIALS: those of the call.
absl::Status CallError(const grpc::Status& status, const std::string& server_name,
                       const Credentials& credentials);

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_CALL_ERROR_H_
