// The flags --addresses, --credentials and --insecure: how a program reaches the servers of a job,
// or how a server is reached.
#ifndef THINWIRE_CONFIG_CONNECTION_FLAGS_H_
#define THINWIRE_CONFIG_CONNECTION_FLAGS_H_

#include <string>

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

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_CONNECTION_FLAGS_H_
