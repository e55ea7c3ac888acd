#include "proto/grpc_message.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace thinwire {

std::string PlainMessage(std::string message) {
  if (absl::StrContains(message, "Hostname Verification Check failed")) {
    return "its certificate is not that of this server";
  }
  if (message == "Deadline Exceeded") return "no answer in time";
  if (message == "Socket closed") return "the server closed the connection";
  const bool connecting = absl::StartsWith(message, "failed to connect") ||
                          absl::StartsWith(message, "DNS resolution failed");
  const size_t colon = message.rfind(": ");
  if (!connecting || colon == std::string::npos || colon + 2 == message.size()) return message;
  message.erase(0, colon + 2);
  message[0] = absl::ascii_tolower(message[0]);
  return message;
}

}  // namespace thinwire
