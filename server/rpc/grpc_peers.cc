#include "server/rpc/grpc_peers.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);
// gRPC tries to connect again after this time, so that the lead soon reaches a server that starts
// after it.
constexpr int kReconnectMs = 200;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  // The timeout of an attempt, which takes up to five round trips with TLS.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(kTimeout)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  return arguments;
}

}  // namespace

struct GrpcPeers::Stub {
  const std::unique_ptr<Control::Stub> control;
};

GrpcPeers::GrpcPeers(std::vector<std::string> addresses, const Credentials& credentials)
    : addresses_(std::move(addresses)) {
  for (uint32_t s = 0; s < addresses_.size(); ++s) {
    stubs_.emplace_back(
        new Stub{Control::NewStub(credentials.Connect(addresses_[s], ServerId{s}, Arguments()))});
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

template <typename Request, typename Reply, typename Start>
void GrpcPeers::Call(const Request& request, std::function<void(absl::StatusOr<Reply>)> done,
                     Start start, absl::Duration work) {
  struct State {
    grpc::ClientContext context;
    Request request;
    Reply reply;
  };
  auto call = std::make_shared<State>();
  call->request = request;
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout + work));
  {
    absl::MutexLock lock(&mu_);
    pending_.insert(&call->context);
  }
  start(&call->context, &call->request, &call->reply,
        [this, call, done = std::move(done)](const grpc::Status& status) {
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
  Call<AdmitRequest, AdmitReply>(request, std::move(done), [&](auto... call) {
    stubs_[server.value]->control->async()->Admit(std::move(call)...);
  });
}

void GrpcPeers::Follow(ServerId server, const FollowRequest& request, FollowDone done) {
  Call<FollowRequest, FollowReply>(request, std::move(done), [&](auto... call) {
    stubs_[server.value]->control->async()->Follow(std::move(call)...);
  });
}

void GrpcPeers::Rollback(ServerId server, const RollbackRequest& request, RollbackDone done) {
  Call<RollbackRequest, RollbackReply>(request, std::move(done), [&](auto... call) {
    stubs_[server.value]->control->async()->Rollback(std::move(call)...);
  });
}

void GrpcPeers::SetMode(ServerId server, const SetModeRequest& request, SetModeDone done) {
  Call<SetModeRequest, SetModeReply>(request, std::move(done), [&](auto... call) {
    stubs_[server.value]->control->async()->SetMode(std::move(call)...);
  });
}

void GrpcPeers::SaveCheckpoint(ServerId server, const SaveCheckpointRequest& request,
                               SaveDone done) {
  Call<SaveCheckpointRequest, SaveCheckpointReply>(
      request, std::move(done),
      [&](auto... call) {
        stubs_[server.value]->control->async()->SaveCheckpoint(std::move(call)...);
      },
      absl::Seconds(request.seconds()));
}

void GrpcPeers::Clip(ServerId server, const ClipRequest& request, ClipDone done) {
  Call<ClipRequest, ClipReply>(request, std::move(done), [&](auto... call) {
    stubs_[server.value]->control->async()->Clip(std::move(call)...);
  });
}

}  // namespace thinwire
