#include "client/transport/grpc_transport.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/memory/byte_chain.h"
#include "common/time/bandwidth_limit.h"
#include "common/tls/worker_token.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_bytes.h"
#include "proto/grpc_message.h"

namespace thinwire {
namespace {

constexpr char kExchange[] = "/thinwire.ParameterService/Exchange";
// The limit on the size of a message. Most messages have about 1 MiB; the largest shard has 1 MiB
// in fp32, plus a header.
constexpr int kLargestMessageBytes = 8 << 20;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  args.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  // The timeout of an attempt to connect, which takes up to five round trips with TLS.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  // Calls fail while the channel waits to reconnect, so this wait delays a worker that waits for a
  // server to start. Together with the interval of the heartbeats, it stays below the two seconds
  // after which steps must go on (decisions/0077).
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 2000);
  args.SetMaxReceiveMessageSize(kLargestMessageBytes);
  args.SetMaxSendMessageSize(kLargestMessageBytes);
  // A channel without a connection pool of its own would share a connection with channels that have
  // the same arguments.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return args;
}

void SetTimeout(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(timeout));
}

absl::Status FromGrpc(const grpc::Status& status) {
  // absl::StatusCode and grpc::StatusCode use the same numbers.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      PlainMessage(status.error_message()));
}

// One call of the gRPC method Exchange, which is a stream. Thread-safe.
class GrpcStream final : public FrameStream,
                         private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // TOKEN: see GrpcTransport; "": none.
  GrpcStream(std::shared_ptr<grpc::Channel> channel, const std::string& token, Bandwidth bandwidth,
             StreamObserver& observer)
      : channel_(std::move(channel)), bandwidth_(std::move(bandwidth)), observer_(observer) {
    if (!token.empty()) context_.AddMetadata(kTokenMetadata, token);
    grpc::GenericStub stub(channel_);
    stub.PrepareBidiStreamingCall(&context_, kExchange, grpc::StubOptions(), this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  ~GrpcStream() override {
    context_.TryCancel();
    if (End()) RemoveHold();
    done_.WaitForNotification();
  }

  void Write(ByteChain frame) override {
    Begin(std::exchange(written_, true) ? bandwidth_.up.get() : nullptr,
          [this, frame = std::move(frame)] {
            if (bandwidth_.up != nullptr) bandwidth_.up->Spend(frame.size());
            outgoing_ = ToByteBuffer(frame);
            StartWrite(&outgoing_);
          });
  }

  void ReadNext() override {
    Begin(bandwidth_.down.get(), [this] { StartRead(&incoming_); });
  }

 private:
  struct State {
    absl::Mutex mu;
    // True if no further operation may be started. While this is false, a hold prevents gRPC from
    // ending the call while another thread starts an operation.
    bool ended ABSL_GUARDED_BY(mu) = false;
  };

  // Calls START, which starts an operation, unless the stream has ended: now, or in its turn of
  // LIMIT, for which the stream need not wait when it is destroyed.
  template <typename Start>
  void Begin(BandwidthLimit* limit, Start start) {
    auto start_unless_ended = [state = state_, start = std::move(start)] {
      absl::MutexLock lock(&state->mu);
      if (!state->ended) start();
    };
    if (limit == nullptr) return start_unless_ended();
    limit->Await(std::move(start_unless_ended));
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      if (End()) RemoveHold();
      return;
    }
    ByteChain frame = FromByteBuffer(incoming_);
    incoming_.Clear();
    if (bandwidth_.down != nullptr) bandwidth_.down->Spend(frame.size());
    observer_.OnFrame(std::move(frame));
  }

  void OnWriteDone(bool ok) override {
    outgoing_.Clear();
    if (ok) observer_.OnWritten();
  }

  void OnDone(const grpc::Status& status) override {
    observer_.OnClosed(FromGrpc(status));
    done_.Notify();
  }

  // Ends the state. Returns true if it had not ended before; the caller must then remove the hold
  // on the call.
  bool End() {
    absl::MutexLock lock(&state_->mu);
    return !std::exchange(state_->ended, true);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const Bandwidth bandwidth_;
  StreamObserver& observer_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;  // gRPC uses this buffer from StartRead to OnReadDone
  grpc::ByteBuffer outgoing_;  // gRPC uses this buffer from StartWrite to OnWriteDone
  bool written_ = false;       // Write was called
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  absl::Notification done_;
};

}  // namespace

struct GrpcTransport::Server {
  std::string address;
  std::shared_ptr<grpc::Channel> data;
  std::unique_ptr<Control::Stub> masters;  // over `data`
  std::unique_ptr<Control::Stub> control;
};

// One call of the gRPC method Masters. Deletes itself at the end of the call.
class GrpcTransport::MastersCall final : private grpc::ClientReadReactor<MastersChunk> {
 public:
  MastersCall(GrpcTransport& transport, ServerId server, const MastersRequest& request,
              uint64_t most_bytes, absl::Duration timeout, Done<std::vector<MastersChunk>> done)
      : transport_(transport), done_(std::move(done)), request_(request), size_(most_bytes) {
    SetTimeout(context_, timeout);
    transport_.BeginCall(context_);
    transport_.servers_[server.value]->masters->async()->Masters(&context_, &request_, this);
    StartRead(&chunk_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    size_status_ = size_.Add(chunk_);
    if (!size_status_.ok()) {
      chunks_.clear();
      return context_.TryCancel();
    }
    BandwidthLimit* const limit = transport_.bandwidth_.down.get();
    if (limit != nullptr) limit->Spend(chunk_.ByteSizeLong());
    chunks_.push_back(std::move(chunk_));
    chunk_.Clear();
    if (limit == nullptr) return StartRead(&chunk_);
    // The call may not end while its turn is awaited.
    AddHold();
    limit->Await([this] {
      StartRead(&chunk_);
      RemoveHold();
    });
  }

  void OnDone(const grpc::Status& status) override {
    GrpcTransport& transport = transport_;
    transport.calls_.End(context_);
    if (!size_status_.ok()) {
      done_(size_status_);
    } else if (status.ok()) {
      done_(std::move(chunks_));
    } else {
      done_(FromGrpc(status));
    }
    delete this;  // releases the context's reference to the channel
    transport.calls_.Release();
  }

  GrpcTransport& transport_;
  const Done<std::vector<MastersChunk>> done_;
  grpc::ClientContext context_;
  const MastersRequest request_;
  MastersChunk chunk_;
  std::vector<MastersChunk> chunks_;
  MastersSize size_;
  absl::Status size_status_;
};

GrpcTransport::GrpcTransport(std::vector<std::string> addresses, const Credentials& credentials,
                             Bandwidth bandwidth)
    : bandwidth_(std::move(bandwidth)) {
  for (uint32_t s = 0; s < addresses.size(); ++s) {
    auto server = std::make_unique<Server>();
    server->address = std::move(addresses[s]);
    server->data = credentials.Connect(server->address, ServerId{s}, Arguments());
    server->masters = Control::NewStub(server->data);
    const auto control = credentials.Connect(server->address, ServerId{s}, Arguments());
    server->control = Control::NewStub(control);
    for (const auto& channel : {server->data, control}) channel->GetState(/*try_to_connect=*/true);
    servers_.push_back(std::move(server));
  }
}

GrpcTransport::~GrpcTransport() {
  if (bandwidth_.down != nullptr) bandwidth_.down->Lift();
  calls_.Finish();
}

std::string GrpcTransport::NameOf(ServerId server) const {
  return absl::StrCat("server ", server.value, " (", servers_[server.value]->address, ")");
}

std::unique_ptr<FrameStream> GrpcTransport::Open(ServerId server, StreamObserver& observer) {
  std::string token;
  {
    absl::MutexLock lock(&mu_);
    token = token_;
  }
  return std::make_unique<GrpcStream>(servers_[server.value]->data, token, bandwidth_, observer);
}

void GrpcTransport::Join(ServerId server, const JoinRequest& request, absl::Duration timeout,
                         Done<JoinReply> done) {
  Call<JoinRequest, JoinReply>(
      server, [](auto& stub, auto... call) { stub.Join(std::move(call)...); }, request, timeout,
      [this, done = std::move(done)](absl::StatusOr<JoinReply> reply) {
        TakeToken(reply);
        done(std::move(reply));
      });
}

void GrpcTransport::Heartbeat(ServerId server, const HeartbeatRequest& request,
                              absl::Duration timeout, Done<HeartbeatReply> done) {
  Call<HeartbeatRequest, HeartbeatReply>(
      server, [](auto& stub, auto... call) { stub.Heartbeat(std::move(call)...); }, request,
      timeout,
      [this, done = std::move(done)](absl::StatusOr<HeartbeatReply> reply) {
        TakeToken(reply);
        done(std::move(reply));
      });
}

void GrpcTransport::Leave(ServerId server, const LeaveRequest& request, absl::Duration timeout,
                          Done<LeaveReply> done) {
  Call<LeaveRequest, LeaveReply>(
      server, [](auto& stub, auto... call) { stub.Leave(std::move(call)...); }, request, timeout,
      std::move(done));
}

void GrpcTransport::Masters(ServerId server, const MastersRequest& request, uint64_t most_bytes,
                            absl::Duration timeout, Done<std::vector<MastersChunk>> done) {
  new MastersCall(*this, server, request, most_bytes, timeout, std::move(done));
}

void GrpcTransport::BeginCall(grpc::ClientContext& context) {
  {
    absl::MutexLock lock(&mu_);
    if (!token_.empty()) context.AddMetadata(kTokenMetadata, token_);
  }
  calls_.Begin(context);
}

template <typename Reply>
void GrpcTransport::TakeToken(const absl::StatusOr<Reply>& reply) {
  if (!reply.ok() || reply->token().empty()) return;
  absl::MutexLock lock(&mu_);
  token_ = reply->token();
}

template <typename Request, typename Reply, typename Start>
void GrpcTransport::Call(ServerId server, Start start, const Request& request,
                         absl::Duration timeout, Done<Reply> done) {
  struct Pending {
    grpc::ClientContext context;
    Request request;
    Reply reply;
  };
  auto call = std::make_shared<Pending>();
  grpc::ClientContext* const context = &call->context;
  call->request = request;
  SetTimeout(*context, timeout);
  BeginCall(*context);
  start(*servers_[server.value]->control->async(), context, &call->request, &call->reply,
        [this, call, done = std::move(done)](const grpc::Status& status) mutable {
          calls_.End(call->context);
          if (status.ok()) {
            done(std::move(call->reply));
          } else {
            done(FromGrpc(status));
          }
          call.reset();
          calls_.Release();
        });
}

}  // namespace thinwire
