#include "config/connection_flags.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

Flag AddAddresses(CommandFlags& command, ConnectionFlags& flags, const std::string& note) {
  return command
      .Add("--addresses", flags.addresses,
           absl::StrCat(
               "host:port of every server, in the order of their numbers, separated by commas",
               note))
      .Type("LIST")
      .Environment("THINWIRE_ADDRESSES");
}

Flag AddCredentials(CommandFlags& command, ConnectionFlags& flags, const std::string& owner,
                    const std::string& note) {
  return command
      .Add("--credentials", flags.credentials,
           absl::StrCat("The folder with ", owner, owner.empty() ? "" : " ",
                        "ca.pem, cert.pem and key.pem (thinwire certs)", note))
      .Type("DIR")
      .Environment("THINWIRE_CREDENTIALS");
}

Flag AddInsecure(CommandFlags& command, ConnectionFlags& flags, const std::string& help) {
  return command.AddSwitch("--insecure", flags.insecure, help).Environment("THINWIRE_INSECURE");
}

}  // namespace thinwire
