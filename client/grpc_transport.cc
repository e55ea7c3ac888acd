#include "client/grpc_transport.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/grpc_stream.h"

namespace thinwire {
namespace {

// One message is about 1 MiB; a shard of the largest size in fp32 is 1 MiB and its header.
constexpr int kLargestMessageBytes = 8 << 20;
// Fixed, since probing is off: what a stream may have under way.
constexpr int kWindowBytes = 2 << 20;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  args.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 2000);
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  args.SetMaxReceiveMessageSize(kLargestMessageBytes);
  args.SetMaxSendMessageSize(kLargestMessageBytes);
  // Channels with equal arguments would share one connection.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return args;
}

void SetTimeout(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(timeout));
}

}  // namespace

GrpcTransport::GrpcTransport(std::vector<std::string> addresses,
                             std::shared_ptr<grpc::ChannelCredentials> credentials) {
  for (std::string& address : addresses) {
    Server server;
    server.data = grpc::CreateCustomChannel(address, credentials, Arguments());
    server.control = Control::NewStub(grpc::CreateCustomChannel(address, credentials, Arguments()));
    server.address = std::move(address);
    servers_.push_back(std::move(server));
  }
}

GrpcTransport::~GrpcTransport() {
  absl::MutexLock lock(&mu_);
  for (grpc::ClientContext* context : cancellable_) context->TryCancel();
  mu_.Await(absl::Condition(
      +[](int* count) { return *count == 0; }, &underway_count_));
}

std::string GrpcTransport::NameOf(ServerId server) const {
  return absl::StrCat("server ", server.value, " (", servers_[server.value].address, ")");
}

std::unique_ptr<Stream> GrpcTransport::Open(ServerId server, StreamObserver& observer) {
  return std::make_unique<GrpcStream>(servers_[server.value].data, observer);
}

absl::StatusOr<JoinReply> GrpcTransport::Join(ServerId server, const JoinRequest& request,
                                              absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  JoinReply reply;
  const grpc::Status status = servers_[server.value].control->Join(&context, request, &reply);
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

absl::StatusOr<LeaveReply> GrpcTransport::Leave(ServerId server, const LeaveRequest& request,
                                                absl::Duration timeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  LeaveReply reply;
  const grpc::Status status = servers_[server.value].control->Leave(&context, request, &reply);
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

void GrpcTransport::Heartbeat(ServerId server, const HeartbeatRequest& request,
                              absl::Duration timeout, HeartbeatDone done) {
  struct Call {
    grpc::ClientContext context;
    HeartbeatRequest request;
    HeartbeatReply reply;
  };
  auto call = std::make_shared<Call>();
  grpc::ClientContext* const context = &call->context;
  call->request = request;
  SetTimeout(*context, timeout);
  {
    absl::MutexLock lock(&mu_);
    cancellable_.insert(context);
    ++underway_count_;
  }
  servers_[server.value].control->async()->Heartbeat(
      context, &call->request, &call->reply,
      [this, call, done = std::move(done)](const grpc::Status& status) mutable {
        {
          absl::MutexLock lock(&mu_);
          cancellable_.erase(&call->context);
        }
        if (status.ok()) {
          done(std::move(call->reply));
        } else {
          done(FromGrpc(status));
        }
        call.reset();  // and with it the context's hold on the channel
        absl::MutexLock lock(&mu_);
        --underway_count_;
      });
}

}  // namespace thinwire
