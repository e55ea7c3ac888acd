#include "config/addresses.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace thinwire {

absl::StatusOr<std::vector<std::string>> ParseAddresses(std::string_view text,
                                                        uint32_t server_count,
                                                        std::optional<ServerId> own) {
  const std::vector<std::string> addresses = absl::StrSplit(std::string(text), ',');
  for (auto address = addresses.begin(); address != addresses.end(); ++address) {
    const bool is_own = own.has_value() && address - addresses.begin() == own->value;
    if (!IsAddress(*address, is_own ? 0 : 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--addresses: wrong value (expected host:port with a port from 1 to 65535, "
                       "got \"",
                       *address, "\")"));
    }
    const auto first = std::find(addresses.begin(), address, *address);
    if (first != address) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--addresses: one address for two servers (expected an address per server, got ",
          *address, " for servers ", first - addresses.begin(), " and ",
          address - addresses.begin(), ")"));
    }
  }
  if (addresses.size() != server_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--addresses: wrong number of servers (expected ", server_count,
                     ", the value of servers, got ", addresses.size(), ")"));
  }
  return addresses;
}

bool IsAddress(std::string_view address, int least_port) {
  const size_t colon = address.rfind(':');
  int port = 0;
  return colon != std::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(std::string(address.substr(colon + 1)), &port) && port >= least_port &&
         port <= 65535;
}

bool IsLoopback(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Accepts only digits and periods after "127.", because the name of another machine may also
  // begin with "127.".
  return host.starts_with("127.") &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

absl::Status CheckPlaintext(const std::string& flag, const std::vector<std::string>& addresses,
                            bool has_credentials, bool insecure) {
  if (has_credentials && insecure) {
    return absl::InvalidArgumentError("--insecure: not valid with --credentials");
  }
  if (has_credentials || insecure) return absl::OkStatus();
  const auto exposed = std::ranges::find_if_not(addresses, IsLoopback);
  if (exposed == addresses.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag,
      ": reachable from other machines without credentials (expected --credentials, an address of "
      "this machine such as 127.0.0.1:7000, or --insecure in a network that nobody else reaches, "
      "got ",
      *exposed, ")"));
}

}  // namespace thinwire
