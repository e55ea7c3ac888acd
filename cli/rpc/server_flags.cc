#include "cli/rpc/server_flags.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/status_macros.h"
#include "config/addresses.h"

namespace thinwire {

Flag AddServerFlags(CommandFlags& command, ConnectionFlags& flags, const std::string& owner) {
  const Flag addresses = AddAddresses(command, flags);
  AddCredentials(command, flags, owner, ", for servers with mutual TLS");
  AddInsecure(command, flags,
              "Allows addresses of other machines without credentials: everybody on the way can "
              "read and change what is sent");
  return addresses;
}

absl::StatusOr<std::vector<std::string>> SplitAddresses(const ConnectionFlags& flags) {
  const auto count = 1 + std::ranges::count(flags.addresses, ',');
  return ParseAddresses(flags.addresses, static_cast<uint32_t>(count));
}

absl::StatusOr<Credentials> LoadCredentials(const ConnectionFlags& flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, SplitAddresses(flags));
  RETURN_IF_ERROR(
      CheckPlaintext("--addresses", addresses, !flags.credentials.empty(), flags.insecure));
  return Credentials::Load(flags.credentials, std::nullopt);
}

}  // namespace thinwire
