#include "server/edge/listener.h"

#include <grpcpp/health_check_service_interface.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace thinwire {

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Checks every character, because a host name may also begin with "127.".
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(Job& job, const std::string& address) {
  std::unique_ptr<Listener> listener(new Listener(job));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&listener->control_);
  builder.RegisterService(&listener->data_);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // Two servers must not share a port, so starting a second server on this port is an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr || (port == 0 && !absl::StartsWith(address, "unix:"))) {
    return absl::UnavailableError(
        absl::StrCat("listen: cannot listen on ", address,
                     "; the port may be in use, or the host may not be this machine"));
  }
  listener->address_ = absl::StartsWith(address, "unix:")
                           ? address
                           : absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  return listener;
}

Listener::~Listener() { Stop(absl::ZeroDuration()); }

void Listener::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  if (grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService()) {
    health->SetServingStatus(false);
  }
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_ = nullptr;
}

}  // namespace thinwire
