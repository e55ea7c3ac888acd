#include "bench/raw_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <deque>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Sends every message back, with at most four on the way between reading and writing.
class EchoCall final : public grpc::ServerGenericBidiReactor {
 public:
  EchoCall() { StartRead(&in_); }
  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    waiting_.emplace_back();
    waiting_.back().Swap(&in_);
    reading_ = false;
    Go();
  }
  void OnWriteDone(bool) override {
    absl::MutexLock lock(&mu_);
    waiting_.pop_front();
    writing_ = false;
    Go();
  }
  void OnDone() override { delete this; }

 private:
  void Go() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!writing_ && !waiting_.empty()) {
      writing_ = true;
      StartWrite(&waiting_.front());
    }
    if (!reading_ && waiting_.size() < 4) {
      reading_ = true;
      StartRead(&in_);
    }
  }

  absl::Mutex mu_;
  grpc::ByteBuffer in_;
  std::deque<grpc::ByteBuffer> waiting_ ABSL_GUARDED_BY(mu_);
  bool reading_ ABSL_GUARDED_BY(mu_) = true;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

class EchoServer::Service final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new EchoCall;
  }
};

EchoServer::EchoServer(int window_bytes) : service_(std::make_unique<Service>()) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(service_.get());
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window_bytes);
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

EchoServer::~EchoServer() = default;

RawStream::RawStream(const std::string& address, size_t message_bytes, int window_bytes)
    : memory_(message_bytes, 1) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, window_bytes);
  grpc::GenericStub stub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args));
  stub.PrepareBidiStreamingCall(&context_, "/bench/Echo", grpc::StubOptions(), this);
  AddHold();
  StartCall();
}

RawStream::~RawStream() {
  context_.TryCancel();
  RemoveHold();
  done_.WaitForNotification();
}

void RawStream::Exchange(int count) {
  {
    absl::MutexLock lock(&mu_);
    to_read_ = count;
    to_write_ = count;
  }
  StartRead(&in_);
  Write();
  const auto over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return to_read_ + to_write_ == 0; };
  absl::MutexLock lock(&mu_, absl::Condition(&over));
}

void RawStream::Write() {
  const grpc::Slice slice(
      const_cast<char*>(memory_.data()), memory_.size(), +[](void*) {});
  out_ = grpc::ByteBuffer(&slice, 1);
  StartWrite(&out_);
}

bool RawStream::More(int& left) {
  absl::MutexLock lock(&mu_);
  return --left > 0;
}

void RawStream::OnWriteDone(bool ok) {
  if (ok && More(to_write_)) Write();
}

void RawStream::OnReadDone(bool ok) {
  in_.Clear();
  if (ok && More(to_read_)) StartRead(&in_);
}

void RawStream::OnDone(const grpc::Status&) { done_.Notify(); }

}  // namespace thinwire
