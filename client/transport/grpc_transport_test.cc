#include "client/transport/grpc_transport.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "client/testing/transport_contract.h"
#include "common/time/bandwidth_limit.h"
#include "common/time/thread_executor.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_bytes.h"

namespace thinwire {
namespace {

class ReferenceReactor final : public grpc::ServerGenericBidiReactor {
 public:
  ReferenceReactor() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    switch (ReferenceActionFor(FromByteBuffer(message_))) {
      case ReferenceAction::kClose:
        return Finish(grpc::Status::OK);
      case ReferenceAction::kFail:
        return Finish({grpc::StatusCode::FAILED_PRECONDITION, "join again"});
      case ReferenceAction::kEcho:
        return StartWrite(&message_);
    }
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class ReferenceService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new ReferenceReactor;
  }
};

class ControlService final : public Control::Service {
 public:
  explicit ControlService(ReferenceControl& control) : control_(control) {}

  grpc::Status Join(grpc::ServerContext*, const JoinRequest* request, JoinReply* reply) override {
    return Answer(control_.Join(*request), *reply);
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    return Answer(control_.Heartbeat(*request), *reply);
  }
  grpc::Status Leave(grpc::ServerContext*, const LeaveRequest* request,
                     LeaveReply* reply) override {
    return Answer(control_.Leave(*request), *reply);
  }
  grpc::Status Masters(grpc::ServerContext*, const MastersRequest* request,
                       grpc::ServerWriter<MastersChunk>* out) override {
    const absl::StatusOr<std::vector<MastersChunk>> chunks = control_.Masters(*request);
    for (const MastersChunk& chunk : *chunks) out->Write(chunk);
    return grpc::Status::OK;
  }

 private:
  template <typename Reply>
  static grpc::Status Answer(const absl::StatusOr<Reply>& answer, Reply& reply) {
    if (!answer.ok()) {
      return {static_cast<grpc::StatusCode>(answer.status().code()),
              std::string(answer.status().message())};
    }
    reply = *answer;
    return grpc::Status::OK;
  }

  ReferenceControl& control_;
};

class GrpcUnderTest final : public TransportUnderTest {
 public:
  explicit GrpcUnderTest(const BandwidthRates& rates = BandwidthRates()) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    builder.RegisterCallbackGenericService(&streams_);
    server_ = builder.BuildAndStart();
    transport_ = std::make_unique<GrpcTransport>(
        std::vector<std::string>{absl::StrCat("127.0.0.1:", port_), "unix:/nonexistent/socket"},
        Credentials(), Bandwidth(rates, threads_));
  }
  ~GrpcUnderTest() override {
    control_.set_answers(true);
    server_->Shutdown(std::chrono::system_clock::now());
  }

  Transport& transport() override { return *transport_; }
  void BreakStreams() override { server_->Shutdown(std::chrono::system_clock::now()); }
  void SetAnswersCalls(bool answers) override { control_.set_answers(answers); }
  int port() const { return port_; }

 private:
  int port_ = 0;
  ReferenceControl control_;
  ControlService service_{control_};
  ReferenceService streams_;
  std::unique_ptr<grpc::Server> server_;
  Threads threads_;
  std::unique_ptr<GrpcTransport> transport_;
};

INSTANTIATE_TEST_SUITE_P(Grpc, TransportContractTest,
                         ::testing::Values([] { return std::make_unique<GrpcUnderTest>(); }));
INSTANTIATE_TEST_SUITE_P(GrpcWithLimits, TransportContractTest, ::testing::Values([] {
                           return std::make_unique<GrpcUnderTest>(
                               BandwidthRates{.up = 5e7, .down = 5e7});
                         }));

// A stream observer that records the status with which the stream ended.
class ClosedObserver final : public StreamObserver {
 public:
  void OnFrame(ByteChain) override {}
  void OnWritten() override {}
  void OnClosed(absl::Status status) override {
    status_ = std::move(status);
    closed_.Notify();
  }
  absl::Status WaitForClosed() {
    closed_.WaitForNotification();
    return status_;
  }

 private:
  absl::Status status_;
  absl::Notification closed_;
};

TEST(GrpcTransportTest, DestroyingAStreamCancelsItsCall) {
  GrpcUnderTest grpc;
  ClosedObserver observer;
  auto stream = grpc.transport().Open(ServerId{0}, observer);
  stream.reset();
  EXPECT_EQ(observer.WaitForClosed().code(), absl::StatusCode::kCancelled);
}

TEST(GrpcTransportTest, DestroyingTheTransportCancelsPendingCalls) {
  absl::Status heartbeat, join, masters;
  {
    GrpcUnderTest grpc;
    grpc.SetAnswersCalls(false);
    GrpcTransport transport({absl::StrCat("127.0.0.1:", grpc.port())});
    transport.Heartbeat(ServerId{0}, HeartbeatRequest(), absl::Minutes(1),
                        [&](const auto& reply) { heartbeat = reply.status(); });
    transport.Join(ServerId{0}, JoinRequest(), absl::Minutes(1),
                   [&](const auto& reply) { join = reply.status(); });
    transport.Masters(ServerId{0}, {}, /*most_bytes=*/1000, absl::Minutes(1),
                      [&](const auto& reply) { masters = reply.status(); });
  }
  EXPECT_EQ(heartbeat.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(join.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(masters.code(), absl::StatusCode::kCancelled);
}

TEST(GrpcTransportTest, AMessageThatAwaitsItsTurnDelaysNoEnd) {
  class Writer final : public StreamObserver {
   public:
    void OnFrame(ByteChain) override {}
    void OnWritten() override { written.Notify(); }
    void OnClosed(absl::Status) override {}
    absl::Notification written;
  };
  const ByteChain frame(std::vector<std::byte>(1000));
  Writer writer;
  absl::Status masters;
  GrpcUnderTest grpc;
  Threads threads;
  {
    // Turns that take minutes, longer than this test may take.
    GrpcTransport transport({absl::StrCat("127.0.0.1:", grpc.port())}, Credentials(),
                            Bandwidth({.up = 1, .down = 1}, threads));
    auto stream = transport.Open(ServerId{0}, writer);
    stream->Write(frame);
    writer.written.WaitForNotification();
    stream->Write(frame);  // a second OnWritten would end the test
    stream.reset();
    transport.Masters(ServerId{0}, {}, /*most_bytes=*/1 << 20, absl::Hours(1),
                      [&](const auto& reply) { masters = reply.status(); });
  }
  EXPECT_EQ(masters.code(), absl::StatusCode::kCancelled);
}

// Records the token of each call, "none" if it has none. Answers each Join with TOKEN, and each
// Heartbeat that shows a token with its successor: with one more "+".
class TokenRecorder final : public Control::Service, public grpc::CallbackGenericService {
 public:
  explicit TokenRecorder(std::string token) : token_(std::move(token)) {}

  grpc::Status Join(grpc::ServerContext* call, const JoinRequest*, JoinReply* reply) override {
    reply->set_token(token_);
    return Record(*call);
  }
  grpc::Status Heartbeat(grpc::ServerContext* call, const HeartbeatRequest*,
                         HeartbeatReply* reply) override {
    const grpc::Status status = Record(*call);
    if (const std::string shown = tokens().back(); shown != "none") reply->set_token(shown + "+");
    return status;
  }
  grpc::Status Leave(grpc::ServerContext* call, const LeaveRequest*, LeaveReply*) override {
    return Record(*call);
  }
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override {
    class Ended final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Ended(const grpc::Status& status) { Finish(status); }
      void OnDone() override { delete this; }
    };
    return new Ended(Record(*call));
  }

  std::vector<std::string> tokens() {
    absl::MutexLock lock(&mu_);
    return tokens_;
  }

 private:
  grpc::Status Record(const grpc::ServerContextBase& call) {
    const auto found = call.client_metadata().find("thinwire-token-bin");
    const bool shown = found != call.client_metadata().end();
    absl::MutexLock lock(&mu_);
    tokens_.push_back(shown ? std::string(found->second.data(), found->second.size()) : "none");
    return grpc::Status::OK;
  }

  const std::string token_;
  absl::Mutex mu_;
  std::vector<std::string> tokens_ ABSL_GUARDED_BY(mu_);
};

TEST(GrpcTransportTest, EveryCallAfterAJoinShowsTheNewestToken) {
  const std::string token("\0\xFFtoken\n", 8);
  TokenRecorder recorder(token);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&recorder);
  builder.RegisterCallbackGenericService(&recorder);
  const auto server = builder.BuildAndStart();
  GrpcTransport transport({absl::StrCat("127.0.0.1:", port)});
  // Waits for the end of the call that START(done) starts.
  const auto call = [](const auto& start) {
    absl::Notification done;
    start([&done](const auto& reply) {
      EXPECT_TRUE(reply.ok()) << reply.status();
      done.Notify();
    });
    done.WaitForNotification();
  };
  const absl::Duration timeout = absl::Minutes(1);
  const auto join = [&](auto done) { transport.Join(ServerId{0}, {}, timeout, done); };
  call([&](auto done) { transport.Heartbeat(ServerId{0}, {}, timeout, done); });
  call(join);
  call(join);
  call([&](auto done) { transport.Heartbeat(ServerId{0}, {}, timeout, done); });
  call([&](auto done) { transport.Leave(ServerId{0}, {}, timeout, done); });
  ClosedObserver observer;
  const auto stream = transport.Open(ServerId{0}, observer);
  EXPECT_EQ(observer.WaitForClosed(), absl::OkStatus());
  EXPECT_EQ(recorder.tokens(),
            (std::vector<std::string>{"none", "none", token, token, token + "+", token + "+"}));
}

TEST(GrpcTransportTest, AFailedConnectionIsReportedWithItsCauseOnly) {
  GrpcTransport transport({"127.0.0.1:1"});
  absl::Notification answered;
  absl::Status status;
  transport.Leave(ServerId{0}, LeaveRequest(), absl::Minutes(1), [&](const auto& reply) {
    status = reply.status();
    answered.Notify();
  });
  answered.WaitForNotification();
  EXPECT_EQ(status, absl::UnavailableError("connection refused"));
}

// Without a call, a channel of gRPC does not connect.
TEST(GrpcTransportTest, ConnectsToAllServersWhenItIsMade) {
  int listeners[2];
  std::vector<std::string> addresses;
  for (int& listener : listeners) {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(listen(listener, 8), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    addresses.push_back(absl::StrCat("127.0.0.1:", ntohs(address.sin_port)));
  }
  const GrpcTransport transport(addresses);
  for (const int listener : listeners) {
    pollfd ready = {.fd = listener, .events = POLLIN};
    EXPECT_EQ(poll(&ready, 1, /*timeout=*/60'000), 1) << "no connection";
    close(listener);
  }
}

TEST(GrpcTransportTest, NamesContainTheAddress) {
  GrpcUnderTest grpc;
  EXPECT_EQ(grpc.transport().NameOf(ServerId{0}),
            absl::StrCat("server 0 (127.0.0.1:", grpc.port(), ")"));
}

}  // namespace
}  // namespace thinwire
