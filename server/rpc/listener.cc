#include "server/rpc/listener.h"

#include <glog/logging.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/rpc/grpc_access.h"
#include "server/rpc/services.h"

namespace thinwire {
namespace {

// The memory of gRPC for received bytes and open calls. A worker's stream uses at most one message
// and one window, which is not part of kQuotaBytesPerWorker. Above the quota, gRPC refuses and
// cancels calls.
constexpr size_t kQuotaBytes = size_t{256} << 20;
constexpr size_t kQuotaBytesPerWorker = size_t{16} << 20;

}  // namespace

struct Listener::Services {
  Services(Job& job, const Credentials& credentials, const Bandwidth& limited)
      : bandwidth(limited),
        access(credentials),
        served(job),
        control(served, access, limited.up),
        data(served, access, limited) {}

  const Bandwidth bandwidth;
  const CallAccess access;
  ServedJob served;
  ControlService control;
  DataService data;
};

absl::StatusOr<std::unique_ptr<Listener>> Listener::Start(Job& job, const std::string& address,
                                                          const Credentials& credentials,
                                                          absl::Duration max_connection_age,
                                                          const Bandwidth& bandwidth) {
  std::unique_ptr<Listener> listener(new Listener(job, credentials, bandwidth));
  grpc::ServerBuilder builder;
  int port = 0;
  if (credentials.identity().has_value()) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                               static_cast<int>(absl::ToInt64Milliseconds(max_connection_age)));
  }
  builder.AddListeningPort(address, listener->services_->access.ForListening(), &port);
  builder.RegisterService(&listener->services_->control);
  builder.RegisterService(&listener->services_->data);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // Without SO_REUSEPORT, starting a second server on a used port fails; otherwise both servers
  // would share the port.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  const MemoryPlan& plan = job.memory_plan();
  if (!plan.grpc_sizes_windows()) {
    LOG(WARNING)
        << "memory: the flow-control windows of the workers are fixed, so workers at a large "
           "distance are slow (expected a --memory_budget of "
        << plan.sized_windows_budget() << " bytes or more for " << plan.worker_count
        << " workers, got " << plan.budget_bytes << ")";
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               static_cast<int>(plan.window_bytes()));
  }
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kMaxIdleTime)));
  // A connection must be set up in this time. Afterwards pings find peers that are gone.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.SetResourceQuota(grpc::ResourceQuota("server").Resize(
      kQuotaBytes + (kQuotaBytesPerWorker + plan.window_bytes()) * job.worker_count()));
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

Listener::Listener(Job& job, const Credentials& credentials, const Bandwidth& bandwidth)
    : services_(std::make_unique<Services>(job, credentials, bandwidth)) {}

Listener::~Listener() { Stop(absl::ZeroDuration()); }

void Listener::SetNotServing() {
  if (grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService()) {
    health->SetServingStatus(false);
  }
}

void Listener::Suspend() { services_->served.Suspend(); }

bool Listener::AwaitCalls(absl::Duration grace) {
  return services_->served.limits().AwaitNone(absl::Now() + grace);
}

void Listener::Resume(Job& job) { services_->served.Resume(job); }

std::string Listener::OpenCalls() const { return services_->served.limits().Count(); }

void Listener::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  SetNotServing();
  // A call that awaits its turn could not end within the grace.
  if (services_->bandwidth.up != nullptr) services_->bandwidth.up->Lift();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_ = nullptr;
}

}  // namespace thinwire
