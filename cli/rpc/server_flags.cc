#include "cli/rpc/server_flags.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "config/addresses.h"

namespace thinwire {

Flag AddServerFlags(CommandFlags& command, ServerFlags& flags, const std::string& owner) {
  Flag addresses =
      command
          .Add("--addresses", flags.addresses,
               "host:port of every server, in the order of their numbers, separated by commas")
          .Type("LIST")
          .Environment("THINWIRE_ADDRESSES");
  command
      .Add("--credentials", flags.credentials,
           absl::StrCat("The folder with ", owner,
                        " ca.pem, cert.pem and key.pem (thinwire certs), for servers with "
                        "mutual TLS"))
      .Type("DIR")
      .Environment("THINWIRE_CREDENTIALS");
  command
      .AddSwitch("--insecure", flags.insecure,
                 "Allows addresses of other machines without credentials: everybody on the way can "
                 "read and change what is sent")
      .Environment("THINWIRE_INSECURE");
  return addresses;
}

absl::StatusOr<std::vector<std::string>> SplitAddresses(const ServerFlags& flags) {
  const auto count = 1 + std::ranges::count(flags.addresses, ',');
  return ParseAddresses(flags.addresses, static_cast<uint32_t>(count));
}

absl::StatusOr<Credentials> LoadCredentials(const ServerFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, SplitAddresses(flags));
  RETURN_IF_ERROR(
      CheckPlaintext("--addresses", addresses, !flags.credentials.empty(), flags.insecure));
  return Credentials::Load(flags.credentials, std::nullopt);
}

}  // namespace thinwire
