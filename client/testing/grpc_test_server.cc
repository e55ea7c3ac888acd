#include "client/testing/grpc_test_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/memory/byte_chain.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_bytes.h"
#include "proto/grpc_status.h"

namespace thinwire {
namespace {

// One stream of a worker. gRPC calls OnDone last, which deletes the object.
class Stream final : public grpc::ServerGenericBidiReactor {
 public:
  Stream(InProcessServer& server, uint64_t number)
      : server_(server), number_(number), outbox_(std::make_shared<Outbox>(*this)) {
    server_.Opened(
        number_,
        {.send = [outbox = outbox_](ByteChain frame) { outbox->Send(std::move(frame)); },
         .close = [outbox = outbox_](const absl::Status& status) { outbox->Close(status); }});
    StartRead(&in_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      server_.Closed(number_);
      return outbox_->Close(absl::CancelledError("the worker closed the stream"));
    }
    const ByteChain frame = FromByteBuffer(in_);
    in_.Clear();
    server_.Frame(number_, frame);
    StartRead(&in_);
  }
  void OnWriteDone(bool ok) override { outbox_->OnWritten(ok); }
  void OnDone() override {
    outbox_->Detach();
    delete this;
  }

 private:
  // The unsent frames. The server may use them after the stream has been deleted. Thread-safe.
  class Outbox {
   public:
    explicit Outbox(Stream& stream) : stream_(&stream) {}

    void Send(ByteChain frame) {
      absl::MutexLock lock(&mu_);
      unsent_.push_back(std::move(frame));
      Advance();
    }
    void Close(const absl::Status& status) {
      absl::MutexLock lock(&mu_);
      if (!end_.has_value()) end_ = status;
      Advance();
    }
    void OnWritten(bool ok) {
      absl::MutexLock lock(&mu_);
      writing_ = false;
      if (!ok) unsent_.clear();
      Advance();
    }
    void Detach() {
      absl::MutexLock lock(&mu_);
      stream_ = nullptr;
    }

   private:
    void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      if (stream_ == nullptr || writing_ || finished_) return;
      if (!unsent_.empty()) {
        writing_ = true;
        stream_->out_ = ToByteBuffer(unsent_.front());
        unsent_.pop_front();
        stream_->StartWrite(&stream_->out_);
      } else if (end_.has_value()) {
        finished_ = true;
        stream_->Finish(ToGrpc(*end_));
      }
    }

    absl::Mutex mu_;
    Stream* stream_ ABSL_GUARDED_BY(mu_);
    std::deque<ByteChain> unsent_ ABSL_GUARDED_BY(mu_);
    bool writing_ ABSL_GUARDED_BY(mu_) = false;
    std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
    bool finished_ ABSL_GUARDED_BY(mu_) = false;
  };

  InProcessServer& server_;
  const uint64_t number_;
  const std::shared_ptr<Outbox> outbox_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;
};

class Streams final : public grpc::CallbackGenericService {
 public:
  explicit Streams(InProcessServer& server) : server_(server) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Stream(server_, ++stream_count_);
  }

 private:
  InProcessServer& server_;
  std::atomic<uint64_t> stream_count_ = 0;
};

class Calls final : public Control::Service {
 public:
  explicit Calls(InProcessServer& server) : server_(server) {}

  grpc::Status Join(grpc::ServerContext*, const JoinRequest* request, JoinReply* reply) override {
    return Answer(server_.Join(*request), *reply);
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    return Answer(server_.Heartbeat(*request), *reply);
  }
  grpc::Status Leave(grpc::ServerContext*, const LeaveRequest* request,
                     LeaveReply* reply) override {
    return Answer(server_.Leave(*request), *reply);
  }

 private:
  template <typename Reply>
  static grpc::Status Answer(const absl::StatusOr<Reply>& answer, Reply& reply) {
    if (!answer.ok()) return ToGrpc(answer.status());
    reply = *answer;
    return grpc::Status::OK;
  }

  InProcessServer& server_;
};

}  // namespace

class GrpcTestServer::Services {
 public:
  Services(InProcessServer& server, int port) : calls_(server), streams_(server) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&calls_);
    builder.RegisterCallbackGenericService(&streams_);
    server_ = builder.BuildAndStart();
  }
  ~Services() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  int port() const { return server_ == nullptr ? 0 : port_; }

 private:
  int port_ = 0;
  Calls calls_;
  Streams streams_;
  std::unique_ptr<grpc::Server> server_;
};

GrpcTestServer::GrpcTestServer(InProcessServer& server, int port)
    : services_(std::make_unique<Services>(server, port)) {}

GrpcTestServer::~GrpcTestServer() = default;

int GrpcTestServer::port() const { return services_->port(); }

}  // namespace thinwire
