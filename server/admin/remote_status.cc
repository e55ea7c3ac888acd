#include "server/admin/remote_status.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(5);

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A channel of its own must not share the connection of other channels to this address.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  return arguments;
}

}  // namespace

struct RemoteStatus::Stub {
  const std::unique_ptr<Control::Stub> control;
};

RemoteStatus::RemoteStatus(const std::string& address, ServerId server,
                           const Credentials& credentials)
    : stub_(new Stub{Control::NewStub(credentials.Connect(address, server, Arguments()))}) {}

RemoteStatus::~RemoteStatus() { calls_.Finish(); }

void RemoteStatus::Ask(StatusSource::Done done) {
  struct Call {
    grpc::ClientContext context;
    StatusRequest request;
    StatusReply reply;
  };
  auto call = std::make_shared<Call>();
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  calls_.Begin(call->context);
  stub_->control->async()->Status(
      &call->context, &call->request, &call->reply,
      [this, call, done = std::move(done)](const grpc::Status& status) mutable {
        calls_.End(call->context);
        if (status.ok()) {
          done(std::move(call->reply));
        } else {
          // gRPC and absl number their status codes equally.
          done(absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                            status.error_message()));
        }
        call.reset();
        calls_.Release();
      });
}

}  // namespace thinwire
