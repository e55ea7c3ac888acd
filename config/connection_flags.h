// The flags --addresses, --credentials and --insecure: how a program reaches the servers of a job,
// or how a server is reached. And --uplink, --downlink and --price_per_gb: how many bytes a process
// may send and receive, and their price.
#ifndef THINWIRE_CONFIG_CONNECTION_FLAGS_H_
#define THINWIRE_CONFIG_CONNECTION_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/time/bandwidth_limit.h"
#include "config/command_flags.h"

namespace thinwire {

struct ConnectionFlags {
  std::string addresses;    // host:port of every server, in the order of their numbers
  std::string credentials;  // folder; empty: plaintext
  bool insecure = false;    // allows plaintext with other machines
};

// Each adds one flag, which is also an environment variable. FLAGS must outlive the command. NOTE
// ends the first sentence of the help, and may have further ones. OWNER: whose certificate it is,
// such as "an operator's"; may be empty.
Flag AddAddresses(CommandFlags& command, ConnectionFlags& flags, const std::string& note = "");
Flag AddCredentials(CommandFlags& command, ConnectionFlags& flags, const std::string& owner,
                    const std::string& note);
Flag AddInsecure(CommandFlags& command, ConnectionFlags& flags, const std::string& help);

struct BandwidthFlags {
  std::string uplink;       // such as 20mbit; empty: no limit
  std::string downlink;     // the same
  double price_per_gb = 0;  // of 10^9 bytes; 0: unknown
};

// Adds the flags, which are also environment variables. FLAGS must outlive the command. OWNER: the
// process, or all processes, of which the limits are: "this server".
void AddBandwidth(CommandFlags& command, BandwidthFlags& flags, const std::string& owner);
// Returns the limits. Errors: InvalidArgument, with the name of the flag.
absl::StatusOr<BandwidthRates> RatesOf(const BandwidthFlags& flags);
// Returns the flags of the limits for another process: {"--uplink", "20mbit"}.
std::vector<std::string> LimitFlags(const BandwidthFlags& flags);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_CONNECTION_FLAGS_H_
