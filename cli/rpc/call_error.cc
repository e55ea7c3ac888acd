#include "cli/rpc/call_error.h"

#include <grpcpp/support/status.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/grpc_message.h"

namespace thinwire {
namespace {

// A server with mutual TLS closes a plaintext connection.
constexpr char kMissing[] =
    " (the server probably requires a certificate: --credentials DIR, made by thinwire certs)";
constexpr char kWrong[] =
    " (the server probably listens without mutual TLS, or the certificates of server and client "
    "have different authorities)";

const char* HintOf(const grpc::Status& status, const Credentials& credentials) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return "";
  const std::string& message = status.error_message();
  if (credentials.identity().has_value()) {
    return absl::StrContains(message, "andshake") ? kWrong : "";
  }
  return absl::StrContains(message, "Socket closed") ||
                 absl::StrContains(message, "Connection reset by peer")
             ? kMissing
             : "";
}

}  // namespace

std::string ServerName(ServerId server, const std::string& address) {
  return absl::StrCat("server ", server.value, " (", address, ")");
}

absl::Status CallError(const grpc::Status& status, const std::string& server_name,
                       const Credentials& credentials) {
  if (status.ok()) return absl::OkStatus();
  if (credentials.identity().has_value() &&
      absl::StrContains(status.error_message(), "Hostname Verification Check failed")) {
    return absl::FailedPreconditionError(absl::StrCat(
        server_name, ": has a certificate of another job or server (expected one of job ",
        credentials.identity()->job, ", the job of --credentials)"));
  }
  // gRPC and absl number their status codes equally.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(server_name, ": ", PlainMessage(status.error_message()),
                                   HintOf(status, credentials)));
}

}  // namespace thinwire
