#include "bench/raw_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"

namespace thinwire {
namespace {

// The server's end of a RawStream. Answers every message with a message of the same size. Stops
// reading while four answers are outstanding.
class RawCall final : public grpc::ServerGenericBidiReactor {
 public:
  RawCall(size_t memory_bytes, size_t message_bytes) : memory_(memory_bytes, message_bytes) {
    StartRead(&in_);
  }
  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    if (!ok) {
      Finish(grpc::Status::OK);
      return;
    }
    in_.Clear();
    ++owed_;
    reading_ = false;
    Go();
  }
  void OnWriteDone(bool) override {
    absl::MutexLock lock(&mu_);
    --owed_;
    writing_ = false;
    Go();
  }
  void OnDone() override { delete this; }

 private:
  void Go() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!writing_ && owed_ > 0) {
      writing_ = true;
      out_ = memory_.Next();
      StartWrite(&out_);
    }
    if (!reading_ && owed_ < 4) {
      reading_ = true;
      StartRead(&in_);
    }
  }

  absl::Mutex mu_;
  RawMemory memory_ ABSL_GUARDED_BY(mu_);
  grpc::ByteBuffer in_, out_;
  int owed_ ABSL_GUARDED_BY(mu_) = 0;
  bool reading_ ABSL_GUARDED_BY(mu_) = true;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

grpc::ByteBuffer RawMemory::Next() {
  const grpc::Slice slice(
      const_cast<char*>(memory_.data()) + at_, message_, +[](void*) {});
  at_ = (at_ + message_) % memory_.size();
  return grpc::ByteBuffer(&slice, 1);
}

class RawServer::Service final : public grpc::CallbackGenericService {
 public:
  Service(size_t memory_bytes, size_t message_bytes)
      : memory_bytes_(memory_bytes), message_bytes_(message_bytes) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new RawCall(memory_bytes_, message_bytes_);
  }

 private:
  const size_t memory_bytes_, message_bytes_;
};

RawServer::RawServer(size_t memory_bytes, size_t message_bytes, const std::string& listen,
                     const Credentials& credentials)
    : service_(std::make_unique<Service>(memory_bytes, message_bytes)) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, credentials.ForServer(), &port);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
}

RawServer::~RawServer() = default;

RawStream::RawStream(const std::string& address, size_t memory_bytes, size_t message_bytes,
                     const Credentials& credentials)
    : memory_(memory_bytes, message_bytes) {
  grpc::ChannelArguments args;
  grpc::GenericStub stub(credentials.Connect(address, ServerId{0}, args));
  stub.PrepareBidiStreamingCall(&context_, "/bench/Raw", grpc::StubOptions(), this);
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
  out_ = memory_.Next();
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
