#include "client/grpc_transport.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "proto/grpc_bytes.h"

namespace thinwire {
namespace {

// Sends every message of any stream back.
class EchoReactor final : public grpc::ServerGenericBidiReactor {
 public:
  EchoReactor() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      StartWrite(&message_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      StartRead(&message_);
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class EchoService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new EchoReactor;
  }
};

class ControlService final : public Control::Service {
 public:
  absl::Notification let_go;

  grpc::Status Join(grpc::ServerContext*, const JoinRequest* request, JoinReply* reply) override {
    if (request->worker() > 1) return {grpc::StatusCode::INVALID_ARGUMENT, "worker 2: want 0 to 1"};
    reply->set_incarnation(request->incarnation() + 1);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    reply->set_epoch(request->epoch());
    return grpc::Status::OK;
  }
  grpc::Status Leave(grpc::ServerContext*, const LeaveRequest*, LeaveReply*) override {
    let_go.WaitForNotification();
    return grpc::Status::OK;
  }
};

// Keeps what a stream says.
class Listener final : public StreamObserver {
 public:
  void OnFrame(ByteChain frame) override {
    absl::MutexLock lock(&mu_);
    frames_.push_back(std::move(frame));
  }
  void OnWritten() override {
    absl::MutexLock lock(&mu_);
    ++written_count_;
  }
  void OnClosed(absl::Status status) override {
    absl::MutexLock lock(&mu_);
    closed_ = std::move(status);
  }

  // A reply can come before the write is done: both are waited for.
  ByteChain NextFrame() {
    const auto come = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return !frames_.empty() && written_count_ > 0;
    };
    absl::MutexLock lock(&mu_, absl::Condition(&come));
    ByteChain frame = std::move(frames_.front());
    frames_.pop_front();
    --written_count_;
    return frame;
  }
  absl::Status Closed() {
    const auto closed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return closed_.has_value(); };
    absl::MutexLock lock(&mu_, absl::Condition(&closed));
    return *closed_;
  }

 private:
  absl::Mutex mu_;
  std::deque<ByteChain> frames_ ABSL_GUARDED_BY(mu_);
  int written_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mu_);
};

class GrpcTransportTest : public ::testing::Test {
 protected:
  GrpcTransportTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&control_);
    builder.RegisterCallbackGenericService(&echo_);
    server_ = builder.BuildAndStart();
    transport_ = std::make_unique<GrpcTransport>(
        std::vector<std::string>{absl::StrCat("127.0.0.1:", port_), "unix:/nonexistent/socket"},
        grpc::InsecureChannelCredentials());
  }
  ~GrpcTransportTest() override {
    if (!control_.let_go.HasBeenNotified()) control_.let_go.Notify();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  int port_ = 0;
  ControlService control_;
  EchoService echo_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<GrpcTransport> transport_;
};

TEST_F(GrpcTransportTest, FramesOfAnySizeComeBackWhole) {
  Listener listener;
  const auto stream = transport_->Open(ServerId{0}, listener);
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{1} << 20, (size_t{1} << 20) + 100}) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
    const ByteChain frame(std::move(bytes));
    stream->Write(frame);
    EXPECT_EQ(listener.NextFrame(), frame) << size;
    stream->ReadNext();
  }
}

TEST_F(GrpcTransportTest, AStreamMayEndAtAnyMoment) {
  for (int i = 0; i < 20; ++i) {
    Listener listener;
    auto stream = transport_->Open(ServerId{0}, listener);
    if (i % 3 > 0) stream->Write(ByteChain(std::vector<std::byte>(1 << 18)));
    if (i % 3 > 1) listener.NextFrame();  // and no ReadNext
    stream.reset();
    EXPECT_EQ(listener.Closed().code(), absl::StatusCode::kCancelled);
  }
}

TEST_F(GrpcTransportTest, AServerThatIsNotThereClosesTheStream) {
  Listener listener;
  const auto stream = transport_->Open(ServerId{1}, listener);
  stream->Write(ByteChain(std::vector<std::byte>(10)));
  EXPECT_EQ(listener.Closed().code(), absl::StatusCode::kUnavailable);
  stream->Write(ByteChain(std::vector<std::byte>(10)));
  stream->ReadNext();
}

TEST_F(GrpcTransportTest, AServerThatStopsClosesTheStream) {
  Listener listener;
  const auto stream = transport_->Open(ServerId{0}, listener);
  stream->Write(ByteChain(std::vector<std::byte>(10)));
  listener.NextFrame();
  stream->ReadNext();
  server_->Shutdown(std::chrono::system_clock::now());
  EXPECT_FALSE(listener.Closed().ok());
}

TEST_F(GrpcTransportTest, ControlCallsCarryTheirAnswersAndErrors) {
  JoinRequest request;
  request.set_incarnation(6);
  EXPECT_EQ(transport_->Join(ServerId{0}, request, absl::Minutes(1))->incarnation(), 7u);
  request.set_worker(2);
  EXPECT_EQ(transport_->Join(ServerId{0}, request, absl::Minutes(1)).status(),
            absl::InvalidArgumentError("worker 2: want 0 to 1"));
  EXPECT_EQ(transport_->Join(ServerId{1}, request, absl::Minutes(1)).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(GrpcTransportTest, ACallThatIsNotAnsweredTimesOut) {
  EXPECT_EQ(transport_->Leave(ServerId{0}, LeaveRequest(), absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  control_.let_go.Notify();
  EXPECT_TRUE(transport_->Leave(ServerId{0}, LeaveRequest(), absl::Minutes(1)).ok());
}

TEST_F(GrpcTransportTest, AHeartbeatIsAnsweredFromAnotherThread) {
  HeartbeatRequest request;
  request.set_epoch(9);
  absl::Notification answered;
  transport_->Heartbeat(ServerId{0}, request, absl::Minutes(1), [&](auto reply) {
    EXPECT_EQ(reply->epoch(), 9u);
    answered.Notify();
  });
  answered.WaitForNotification();
  absl::Notification failed;
  transport_->Heartbeat(ServerId{1}, request, absl::Minutes(1), [&](auto reply) {
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
    failed.Notify();
  });
  failed.WaitForNotification();
}

TEST_F(GrpcTransportTest, AServerIsNamedWithItsAddress) {
  EXPECT_EQ(transport_->NameOf(ServerId{0}), absl::StrCat("server 0 (127.0.0.1:", port_, ")"));
}

}  // namespace
}  // namespace thinwire
