// The addresses of servers: host:port, [::1]:port or unix:PATH.
#ifndef THINWIRE_CONFIG_ADDRESSES_H_
#define THINWIRE_CONFIG_ADDRESSES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace thinwire {

// Splits the value of --addresses, such as "a:7000,b:7000". Errors: InvalidArgument that names the
// first entry that is given twice or is not host:port with a port from 1 to 65535, or the number of
// entries if it is not SERVER_COUNT. The port of server OWN may be 0.
absl::StatusOr<std::vector<std::string>> ParseAddresses(std::string_view text,
                                                        uint32_t server_count,
                                                        std::optional<ServerId> own = std::nullopt);

// Returns true if ADDRESS is host:port or [::1]:port with a port from LEAST_PORT to 65535.
bool IsAddress(std::string_view address, int least_port);

// Returns whether ADDRESS (host:port) is reachable from this machine only.
bool IsLoopback(std::string_view address);

// Checks that a process speaks plaintext with other machines only if it may: every process without
// credentials, at both ends of a connection, needs --insecure for an address that is not
// IsLoopback. ADDRESSES is the value of FLAG. Errors: InvalidArgument for the first such address,
// and for --insecure together with credentials.
absl::Status CheckPlaintext(const std::string& flag, const std::vector<std::string>& addresses,
                            bool has_credentials, bool insecure);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_ADDRESSES_H_
