// The settings of the kernel's TCP that slow a link with a long round trip down (docs/distance.md).
#ifndef THINWIRE_CLI_DOCTOR_TCP_SETTINGS_H_
#define THINWIRE_CLI_DOCTOR_TCP_SETTINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace thinwire {

struct TcpSettings {
  std::string congestion_control;  // such as "cubic"
  bool slow_start_after_idle = false;
};

// Reads the settings of this host from DIR. Returns nullopt if DIR does not have them, as on a
// kernel other than Linux.
std::optional<TcpSettings> ReadTcpSettings(const std::string& dir = "/proc/sys/net/ipv4");

// Returns a line for each setting that should be changed, on all hosts, for a link with ROUND_TRIP.
std::vector<std::string> TcpAdvice(const TcpSettings& settings, absl::Duration round_trip);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_TCP_SETTINGS_H_
