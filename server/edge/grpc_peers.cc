#include "server/edge/grpc_peers.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace thinwire {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
// gRPC tries to connect again after this time, so that the lead soon reaches a server that starts
// after it.
constexpr int kReconnectMs = 200;

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

GrpcPeers::GrpcPeers(std::vector<std::string> addresses) : addresses_(std::move(addresses)) {
  for (const std::string& address : addresses_) {
    stubs_.push_back(Control::NewStub(ChannelTo(address)));
  }
}

GrpcPeers::~GrpcPeers() {
  absl::MutexLock lock(&mu_);
  for (grpc::ClientContext* context : pending_) context->TryCancel();
  mu_.Await(absl::Condition(
      +[](std::set<grpc::ClientContext*>* pending) { return pending->empty(); }, &pending_));
}

std::string GrpcPeers::NameOf(ServerId server) const {
  return absl::StrCat("server ", server.value, " (", addresses_[server.value], ")");
}

template <typename Reply, typename Request, typename Start>
void GrpcPeers::Call(const Request& request, Start start,
                     std::function<void(absl::StatusOr<Reply>)> done) {
  struct Pending {
    grpc::ClientContext context;
    Request request;
    Reply reply;
  };
  auto call = std::make_shared<Pending>();
  call->request = request;
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  {
    absl::MutexLock lock(&mu_);
    pending_.insert(&call->context);
  }
  start(&call->context, &call->request, &call->reply,
        [this, call, done = std::move(done)](const grpc::Status& status) mutable {
          if (status.ok()) {
            done(call->reply);
          } else {
            // gRPC and absl number their status codes equally.
            done(absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                              status.error_message()));
          }
          grpc::ClientContext* const context = &call->context;
          absl::MutexLock lock(&mu_);
          pending_.erase(context);
        });
}

void GrpcPeers::Admit(ServerId server, const AdmitRequest& request, AdmitDone done) {
  const auto start = [stub = stubs_[server.value].get()](auto... arguments) {
    stub->async()->Admit(std::move(arguments)...);
  };
  Call<AdmitReply>(request, start, std::move(done));
}

void GrpcPeers::Scale(ServerId server, const ScaleRequest& request, ScaleDone done) {
  const auto start = [stub = stubs_[server.value].get()](auto... arguments) {
    stub->async()->Scale(std::move(arguments)...);
  };
  Call<ScaleReply>(request, start, std::move(done));
}

}  // namespace thinwire
