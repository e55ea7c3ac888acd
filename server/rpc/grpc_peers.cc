#include "server/rpc/grpc_peers.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/control.grpc.pb.h"
#include "proto/control_rpc.h"

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

GrpcPeers::GrpcPeers(std::vector<std::string> addresses, const Credentials& credentials)
    : addresses_(std::move(addresses)) {
  for (uint32_t s = 0; s < addresses_.size(); ++s) {
    channels_.push_back(credentials.Connect(addresses_[s], ServerId{s}, Arguments()));
  }
}

GrpcPeers::~GrpcPeers() { calls_.Finish(); }

std::string GrpcPeers::NameOf(ServerId server) const {
  return absl::StrCat("server ", server.value, " (", addresses_[server.value], ")");
}

void GrpcPeers::Start(ServerId server, AnyPeerCall call) {
  std::visit([&](auto& each) { Send(server, std::move(each)); }, call);
}

template <typename Request>
void GrpcPeers::Send(ServerId server, PeerCall<Request> call) {
  struct State {
    PeerCall<Request> call;
    grpc::ClientContext context;
    ReplyTo<Request> reply;
  };
  auto state = std::make_shared<State>();
  state->call = std::move(call);
  state->context.set_deadline(
      absl::ToChronoTime(absl::Now() + kTimeout + WorkTime(state->call.request)));
  calls_.Begin(state->context);
  grpc::TemplatedGenericStub<Request, ReplyTo<Request>> stub(channels_[server.value]);
  stub.UnaryCall(
      &state->context, MethodOf<Request>(), grpc::StubOptions(), &state->call.request,
      &state->reply, [this, state](const grpc::Status& status) mutable {
        calls_.End(state->context);
        if (status.ok()) {
          state->call.done(state->reply);
        } else {
          // gRPC and absl number their status codes equally.
          state->call.done(absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                                        status.error_message()));
        }
        state.reset();
        calls_.Release();
      });
}

}  // namespace thinwire
