#include "server/rpc/listener.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/time/clock.h"
#include "gtest/gtest.h"
#include "proto/control.grpc.pb.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/durable/testing/faulty_files.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/job/testing/test_stream.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/rpc/testing/call_method.h"

namespace thinwire {
namespace {

// Starts a server on a free port in this process.
class ListenerTest : public testing::Test {
 protected:
  SteadyClock clock_;
  JobThreads threads_;
  const std::unique_ptr<Job> job_ =
      MakeJob({}, {.epoch = Epoch{5}}, clock_, threads_.executors()).value();
  const std::unique_ptr<Listener> listener_ = Listener::Start(*job_, "127.0.0.1:0").value();
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(listener_->address(), grpc::InsecureChannelCredentials());
  const std::unique_ptr<Control::Stub> control_ = Control::NewStub(channel_);
};

TEST_F(ListenerTest, TheAddressHasTheActualPort) {
  EXPECT_EQ(listener_->address().rfind("127.0.0.1:", 0), 0u);
  EXPECT_NE(listener_->address(), "127.0.0.1:0");
}

TEST_F(ListenerTest, ATakenPortIsUnavailable) {
  const auto second = Listener::Start(*job_, listener_->address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ListenerTest, ErrorsArriveWithTheirCodesAndMessages) {
  grpc::ClientContext context;
  JoinRequest request;
  request.set_job("train");
  request.set_worker(7);
  JoinReply reply;
  const grpc::Status status = control_->Join(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "worker: not a worker of this job (expected below 1, got 7)");
}

TEST_F(ListenerTest, AJoinThatDoesNotParseIsRefusedInWords) {
  // A string of 127 bytes that are missing.
  const grpc::Status status = CallMethod(channel_, "/thinwire.Control/Join", "\x0a\x7f").status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "join: not a JoinRequest of proto/control.proto (got 2 bytes)");
}

// Streams that send nothing.
class EmptyStreams {
 public:
  EmptyStreams(const std::shared_ptr<grpc::Channel>& channel, size_t count)
      : data_(ParameterService::NewStub(channel)) {
    for (size_t i = 0; i < count; ++i) streams_.push_back(std::make_unique<Stream>(*this));
  }
  ~EmptyStreams() {
    for (const auto& stream : streams_) stream->context.TryCancel();
    AwaitEnds(streams_.size());
  }

  // Blocks until COUNT streams have ended. Returns the status of each ended stream.
  std::vector<grpc::Status> AwaitEnds(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ends_.size() >= count; };
    mu_.Await(absl::Condition(&ended));
    return ends_;
  }

 private:
  struct Stream final : grpc::ClientBidiReactor<WorkerMessage, ServerMessage> {
    explicit Stream(EmptyStreams& all) : all(all) {
      all.data_->async()->Exchange(&context, this);
      StartCall();
    }
    void OnDone(const grpc::Status& status) override {
      absl::MutexLock lock(&all.mu_);
      all.ends_.push_back(status);
    }
    EmptyStreams& all;
    grpc::ClientContext context;
  };

  const std::unique_ptr<ParameterService::Stub> data_;
  absl::Mutex mu_;
  std::vector<grpc::Status> ends_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(ListenerTest, StreamsAboveTheLimitAreRefused) {
  EmptyStreams streams(channel_, 68 + 5);
  for (const grpc::Status& end : streams.AwaitEnds(5)) {
    EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(end.error_message(), "server: too many open Exchange streams (expected at most 68)");
  }
}

TEST_F(ListenerTest, MastersBeforeTheFirstJoinAreAnError) {
  grpc::ClientContext context;
  const auto reader = control_->Masters(&context, MastersRequest());
  MastersChunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ListenerTest, StopRefusesNewCalls) {
  listener_->Stop(absl::Seconds(5));
  grpc::ClientContext context;
  StatusReply reply;
  EXPECT_EQ(control_->Status(&context, StatusRequest(), &reply).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// A call that has no answer before the log fails would otherwise keep the gRPC server, and with it
// the process, alive for ever.
TEST(ListenerLogTest, EveryCallEndsWhenTheEventLogFails) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder("/state").ok());
  SteadyClock clock;
  JobThreads threads;
  absl::Notification failed;
  JobSpec spec;
  spec.recovery.durability = Durability::kLog;
  const DurableOptions durable = {
      .files = &files, .folder = "/state", .log_failed = [&](const auto&) { failed.Notify(); }};
  const auto job =
      MakeJob(spec, {.epoch = Epoch{5}, .durable = durable}, clock, threads.executors()).value();
  const auto listener = Listener::Start(*job, "127.0.0.1:0").value();
  const auto control = Control::NewStub(
      grpc::CreateChannel(listener->address(), grpc::InsecureChannelCredentials()));
  const Partition partition = Partition::Make({{"w", {2, 2}}}, 0, 1).value();
  const auto join = [&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    JoinReply reply;
    return control->Join(&context, JoinRequestOf(partition, 0, 0, 0), &reply);
  };

  files.SetFreeBytes(100);  // less than the record of the first Join
  const grpc::Status waiting = join();
  failed.WaitForNotification();
  EXPECT_EQ(waiting.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(waiting.error_message(), "this server has ended before it could answer");
  LeaveRequest leave;
  leave.set_incarnation(1);
  LeaveReply left;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
  EXPECT_EQ(control->Leave(&context, leave, &left).error_code(), grpc::StatusCode::UNAVAILABLE)
      << "a later record is dropped, too";

  absl::Notification stopped;
  job->Stop([&stopped] { stopped.Notify(); });
  stopped.WaitForNotification();
  listener->Stop(absl::Seconds(5));
}

TEST(ListenerRestartTest, AConnectionOutlivesTheJob) {
  SteadyClock clock;
  JobThreads threads;
  auto job = MakeJob({}, {.epoch = Epoch{5}}, clock, threads.executors()).value();
  const auto listener = Listener::Start(*job, "127.0.0.1:0").value();
  const auto control = Control::NewStub(
      grpc::CreateChannel(listener->address(), grpc::InsecureChannelCredentials()));
  StatusReply reply;
  const auto ask = [&] {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    return control->Status(&context, StatusRequest(), &reply);
  };
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(reply.epoch(), 5u);

  listener->Suspend();
  EXPECT_EQ(ask().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ask().error_message(), "this server goes back to an earlier step");
  ASSERT_TRUE(listener->AwaitCalls(absl::Minutes(1)));
  job = MakeJob({}, {.epoch = Epoch{6}}, clock, threads.executors()).value();
  listener->Resume(*job);
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(reply.epoch(), 6u);
}

TEST(ListenerHealthTest, TheServerIsServingUntilItBeginsToStop) {
  grpc::EnableDefaultHealthCheckService(true);  // a setting of the whole process
  SteadyClock clock;
  JobThreads threads;
  const auto job = MakeJob({}, {.epoch = Epoch{5}}, clock, threads.executors()).value();
  const auto listener = Listener::Start(*job, "127.0.0.1:0").value();
  grpc::EnableDefaultHealthCheckService(false);
  const auto channel = grpc::CreateChannel(listener->address(), grpc::InsecureChannelCredentials());
  // Returns the bytes of the HealthCheckResponse. The request is an empty message.
  const auto check = [&] {
    const MethodReply reply = CallMethod(channel, "/grpc.health.v1.Health/Check");
    return reply.message.value_or(reply.status.error_message());
  };
  EXPECT_EQ(check(), "\x08\x01") << "SERVING";
  listener->SetNotServing();
  EXPECT_EQ(check(), "\x08\x02") << "NOT_SERVING, although calls are still answered";
}

}  // namespace
}  // namespace thinwire
