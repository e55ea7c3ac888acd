// Tests a server with a client that consists only of generated protobuf classes. This shows that
// docs/wire.md is sufficient to write a client.
#include <grpcpp/grpcpp.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/model/partition.h"
#include "common/time/clock.h"
#include "gtest/gtest.h"
#include "proto/control.grpc.pb.h"
#include "proto/join_tensors.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/rpc/listener.h"

namespace thinwire {
namespace {

constexpr uint64_t kEpoch = 12345;
constexpr uint32_t kFp32 = 1;

// Encodes VALUES as docs/wire.md describes: one byte with the codec, then little-endian floats.
std::string Fp32Payload(const std::vector<float>& values) {
  std::string payload(1, '\1');
  payload.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return payload;
}

std::vector<float> FloatsOf(const std::string& payload) {
  std::vector<float> values((payload.size() - 1) / sizeof(float));
  std::memcpy(values.data(), payload.data() + 1, values.size() * sizeof(float));
  return values;
}

// A stream to the server. It stores received verdicts and parameters by shard until the test asks
// for them.
class GeneratedStream {
 public:
  explicit GeneratedStream(ParameterService::Stub& stub) : stream_(stub.Exchange(&context_)) {}
  ~GeneratedStream() { context_.TryCancel(); }

  bool Send(const WorkerMessage& message) { return stream_->Write(message); }

  PushVerdict NextVerdict(uint32_t shard) { return Next(verdicts_, shard); }
  Parameters NextParameters(uint32_t shard) { return Next(parameters_, shard); }

  // Discards messages until the stream ends. Returns the status of the stream.
  grpc::Status End() {
    ServerMessage message;
    while (stream_->Read(&message)) {
    }
    return stream_->Finish();
  }
  void WritesDone() { stream_->WritesDone(); }

 private:
  template <typename Entry>
  Entry Next(std::multimap<uint32_t, Entry>& entries, uint32_t shard) {
    ServerMessage message;
    while (!entries.contains(shard)) {
      if (!stream_->Read(&message)) {
        ADD_FAILURE() << "the stream ended: " << stream_->Finish().error_message();
        return Entry();
      }
      EXPECT_EQ(message.epoch(), kEpoch);
      for (const PushVerdict& verdict : message.verdicts())
        verdicts_.emplace(verdict.shard(), verdict);
      for (const Parameters& p : message.parameters()) parameters_.emplace(p.shard(), p);
    }
    const auto first = entries.lower_bound(shard);
    Entry entry = first->second;
    entries.erase(first);
    return entry;
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerMessage, ServerMessage>> stream_;
  std::multimap<uint32_t, PushVerdict> verdicts_;
  std::multimap<uint32_t, Parameters> parameters_;
};

JobSpec Spec() {
  return {.optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5},
          .schedule = {.learning_rate = 0.25}};
}

class GeneratedClientTest : public testing::Test {
 protected:
  GeneratedClientTest() {
    JoinRequest request;
    request.set_job("train");
    request.set_servers(1);
    request.set_partition_hash(partition_.hash());
    SetTensors(partition_.tensors(), request);
    grpc::ClientContext context;
    const grpc::Status status = control_->Join(&context, request, &joined_);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(joined_.epoch(), kEpoch);
  }

  WorkerMessage Message() const {
    WorkerMessage message;
    message.set_incarnation(joined_.incarnation());
    message.set_generation(joined_.generation());
    message.set_epoch(joined_.epoch());
    return message;
  }
  WorkerMessage SeedAndRead() const {
    WorkerMessage message = Message();
    for (uint32_t shard = 0; shard < partition_.shard_count(); ++shard) {
      Seed& seed = *message.add_seeds();
      seed.set_shard(shard);
      seed.set_payload(Fp32Payload(std::vector<float>(Count(shard), 1)));
      Read& read = *message.add_reads();
      read.set_shard(shard);
      read.set_read_codec(kFp32);
    }
    return message;
  }
  WorkerMessage PushAll(uint64_t step, float gradient) const {
    WorkerMessage message = Message();
    for (uint32_t shard = 0; shard < partition_.shard_count(); ++shard) {
      Push& push = *message.add_pushes();
      push.set_shard(shard);
      push.set_step(step);
      push.set_examples(8);
      push.set_computed_version(step);
      push.set_held_version(step);
      push.set_read_codec(kFp32);
      push.set_payload(Fp32Payload(std::vector<float>(Count(shard), gradient)));
    }
    return message;
  }
  size_t Count(uint32_t shard) const { return partition_.value_count(ShardId{shard}); }

  // Expects that the server still serves a new, correct stream.
  void ExpectAlive() {
    GeneratedStream stream(*data_);
    ASSERT_TRUE(stream.Send(SeedAndRead()));
    EXPECT_EQ(FloatsOf(stream.NextParameters(0).payload()).size(), Count(0));
  }
  void ExpectEnd(const WorkerMessage& message, grpc::StatusCode code, const std::string& words) {
    {
      GeneratedStream stream(*data_);
      stream.Send(message);
      const grpc::Status end = stream.End();
      EXPECT_EQ(end.error_code(), code) << end.error_message();
      EXPECT_NE(end.error_message().find(words), std::string::npos) << end.error_message();
    }
    ExpectAlive();
  }

  const Partition partition_ = Partition::Make({{"w", {100, 50}}, {"b", {10}}}, 0, 1).value();
  SteadyClock clock_;
  JobThreads threads_;
  const std::unique_ptr<Job> job_ =
      MakeJob(Spec(), {.epoch = Epoch{kEpoch}}, clock_, threads_.executors()).value();
  const std::unique_ptr<Listener> listener_ = Listener::Start(*job_, "127.0.0.1:0").value();
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(listener_->address(), grpc::InsecureChannelCredentials());
  const std::unique_ptr<Control::Stub> control_ = Control::NewStub(channel_);
  const std::unique_ptr<ParameterService::Stub> data_ = ParameterService::NewStub(channel_);
  JoinReply joined_;
};

TEST_F(GeneratedClientTest, TrainsTwoStepsWithMomentum) {
  GeneratedStream stream(*data_);
  ASSERT_TRUE(stream.Send(SeedAndRead()));
  ASSERT_GT(partition_.shard_count(), 1u);
  // The momentum is 0.5 and the learning rate 0.25. The gradients 1 and 2 give the velocities 1 and
  // 0.5 * 1 + 2 = 2.5.
  const float after[] = {1, 0.75, 0.125};
  for (uint64_t step = 0; step <= 2; ++step) {
    for (uint32_t shard = 0; shard < partition_.shard_count(); ++shard) {
      const Parameters parameters = stream.NextParameters(shard);
      EXPECT_EQ(parameters.step(), step);
      EXPECT_EQ(parameters.version(), step);
      EXPECT_EQ(parameters.kind(), Parameters::FULL);
      EXPECT_EQ(FloatsOf(parameters.payload()), std::vector<float>(Count(shard), after[step]));
    }
    if (step == 2) break;
    ASSERT_TRUE(stream.Send(PushAll(step, step == 0 ? 1 : 2)));
    for (uint32_t shard = 0; shard < partition_.shard_count(); ++shard) {
      const PushVerdict verdict = stream.NextVerdict(shard);
      EXPECT_EQ(verdict.kind(), PushVerdict::ACCEPT);
      EXPECT_EQ(verdict.step(), step);
      EXPECT_EQ(verdict.frontier(), step + 1);
    }
  }
  stream.WritesDone();
  EXPECT_TRUE(stream.End().ok());
}

TEST_F(GeneratedClientTest, MastersReturnsTheParametersByTensor) {
  ExpectAlive();
  grpc::ClientContext context;
  const auto reader = control_->Masters(&context, MastersRequest());
  std::map<std::string, size_t> bytes;
  MastersChunk chunk;
  while (reader->Read(&chunk)) {
    bytes[chunk.tensor()] += chunk.values().size();
    EXPECT_EQ(FloatsOf("\1" + chunk.values())[0], 1);
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(bytes, (std::map<std::string, size_t>{{"w", 20000}, {"b", 40}}));
}

TEST_F(GeneratedClientTest, TruncatedMessageEndsOnlyItsStream) {
  // Generated classes cannot send a truncated message. The test therefore puts the bytes of a
  // truncated entry into an unknown field; the server receives the same bytes as from a raw stream.
  WorkerMessage message = Message();
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(6, "\x7a\x20");
  ExpectEnd(message, grpc::StatusCode::INVALID_ARGUMENT, "expected 32 more bytes");
}

TEST_F(GeneratedClientTest, NothingBehindAMalformedMessageIsApplied) {
  WorkerMessage bad = PushAll(0, 1);
  bad.mutable_pushes(0)->set_shard(99);
  for (int i = 0; i < 200; ++i) {
    GeneratedStream stream(*data_);
    stream.Send(bad);
    stream.Send(PushAll(0, 1));
    stream.WritesDone();
    const grpc::Status end = stream.End();
    ASSERT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << end.error_message();
  }
  grpc::ClientContext context;
  StatusReply status;
  ASSERT_TRUE(control_->Status(&context, StatusRequest(), &status).ok());
  EXPECT_EQ(status.accepted_pushes() + status.early_pushes(), 0u);
  ExpectAlive();
}

TEST_F(GeneratedClientTest, TooManyEntriesEndOnlyTheirStream) {
  WorkerMessage message = Message();
  for (int i = 0; i < 65536; ++i) message.add_pushes();
  ExpectEnd(message, grpc::StatusCode::INVALID_ARGUMENT, "too many entries (expected at most 64)");
}

TEST_F(GeneratedClientTest, WrongPayloadLengthEndsOnlyItsStream) {
  WorkerMessage message = PushAll(0, 1);
  message.mutable_pushes(0)->mutable_payload()->pop_back();
  ExpectEnd(message, grpc::StatusCode::INVALID_ARGUMENT, "shard 0: fp32 payload");
}

TEST_F(GeneratedClientTest, UnknownCodecEndsOnlyItsStream) {
  WorkerMessage message = PushAll(0, 1);
  (*message.mutable_pushes(0)->mutable_payload())[0] = 77;
  ExpectEnd(message, grpc::StatusCode::INVALID_ARGUMENT,
            "shard 0: codec: unknown number (expected 1 to 32, got 77)");
}

TEST_F(GeneratedClientTest, UnknownShardEndsOnlyItsStream) {
  WorkerMessage message = PushAll(0, 1);
  message.mutable_pushes(0)->set_shard(99);
  ExpectEnd(message, grpc::StatusCode::INVALID_ARGUMENT, "shard 99: does not exist");
}

TEST_F(GeneratedClientTest, WrongEpochEndsOnlyItsStream) {
  WorkerMessage message = PushAll(0, 1);
  message.set_epoch(1);
  ExpectEnd(message, grpc::StatusCode::FAILED_PRECONDITION, "(expected 12345");
}

TEST_F(GeneratedClientTest, PushOfAnotherGenerationIsStale) {
  GeneratedStream stream(*data_);
  ASSERT_TRUE(stream.Send(SeedAndRead()));
  WorkerMessage message = PushAll(0, 1);
  message.set_generation(joined_.generation() + 1);
  ASSERT_TRUE(stream.Send(message));
  EXPECT_EQ(stream.NextVerdict(0).kind(), PushVerdict::STALE);
}

TEST_F(GeneratedClientTest, NanIsRefusedAndTheStreamContinues) {
  GeneratedStream stream(*data_);
  ASSERT_TRUE(stream.Send(SeedAndRead()));
  stream.NextParameters(0);
  ASSERT_TRUE(stream.Send(PushAll(0, std::nanf(""))));
  EXPECT_EQ(stream.NextVerdict(0).kind(), PushVerdict::REFUSED);
  const Parameters next = stream.NextParameters(0);
  EXPECT_EQ(next.step(), 1u);
  EXPECT_EQ(FloatsOf(next.payload()), std::vector<float>(Count(0), 1));
}

TEST_F(GeneratedClientTest, MessageAboveTheSizeLimitIsRefused) {
  WorkerMessage message = Message();
  message.add_seeds()->set_payload(std::string(kMaxMessageBytes + 1, '\0'));
  ExpectEnd(message, grpc::StatusCode::RESOURCE_EXHAUSTED, "");
}

}  // namespace
}  // namespace thinwire
