// The flags of a command that calls the servers of a running job.
#ifndef THINWIRE_CLI_RPC_SERVER_FLAGS_H_
#define THINWIRE_CLI_RPC_SERVER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

namespace thinwire {

// Adds --addresses, which is not required unless the caller says so.
CLI::Option* AddAddressesFlag(CLI::App& app, std::string& addresses);

// Adds --credentials. OWNER: whose certificate it is, such as "an operator's".
CLI::Option* AddCredentialsFlag(CLI::App& app, std::string& credentials, const std::string& owner);

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_SERVER_FLAGS_H_
