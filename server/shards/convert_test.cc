#include "server/shards/convert.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/codec/codec.h"
#include "common/memory/byte_chain.h"
#include "common/spec/place_tensors.h"
#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr uint32_t kFp32 = 1;

ByteChain Payload(const std::vector<float>& values, CodecId id = CodecId::kFp32) {
  const auto codec = MakeCodec({.id = id}).value();
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(values.size()));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  return ByteChain(std::move(bytes));
}

JoinRequest Request() {
  JoinRequest request;
  request.set_servers(2);
  for (const char* name : {"a", "b"}) {
    Tensor& tensor = *request.add_tensors();
    tensor.set_name(name);
    tensor.add_shape(2);
    tensor.add_shape(2);
  }
  request.set_partition_hash(Partition::Make({{"a", {2, 2}}, {"b", {2, 2}}}, 0, 2).value().hash());
  return request;
}

// Tests the conversions with a partition of two shards with four values each, one shard per server.
class ConvertTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<ShardEvents>> Events(WorkerFrame frame) const {
    return EventsOf(std::move(frame), partition_, home_, kGeneration, publishes_);
  }
  std::string ErrorOf(const WorkerFrame& frame) const {
    const auto events = Events(frame);
    if (events.ok()) return "none";
    EXPECT_EQ(events.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(events.status().message());
  }
  WorkerFrame Frame() const {
    WorkerFrame frame;
    frame.worker = {3};
    frame.incarnation = {2};
    frame.generation = kGeneration;
    return frame;
  }
  WorkerFrame WithPush(uint32_t examples, ByteChain payload, uint32_t read_codec = kFp32) const {
    WorkerFrame frame = Frame();
    PushEntry& push = frame.pushes.emplace_back();
    push.shard = here_;
    push.examples = examples;
    push.read_codec = read_codec;
    push.payload = std::move(payload);
    return frame;
  }

  bool publishes_ = false;
  static constexpr Generation kGeneration{1};
  const Partition partition_ = PartitionOf(Request(), 2).value();
  const ServerId home_{1};
  const ShardId here_ = partition_.ShardsOf(home_).front();
  const ShardId elsewhere_ = partition_.ShardsOf(ServerId{0}).front();
  const std::string prefix_ = "shard " + std::to_string(here_.value) + ": ";
};

TEST_F(ConvertTest, APushKeepsAllItsFields) {
  WorkerFrame frame = WithPush(8, Payload({1, 2, 3, 4}), 3);
  frame.pushes[0].step = {5};
  frame.pushes[0].late_examples = 7;
  frame.pushes[0].computed_version = {11};
  frame.pushes[0].rate_factor = 0.5f;
  const auto groups = Events(frame).value();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].shard, here_);
  const auto& push = std::get<PushEvent>(groups[0].events.at(0));
  EXPECT_EQ(push.worker, WorkerId{3});
  EXPECT_EQ(push.incarnation, Incarnation{2});
  EXPECT_EQ(push.generation, kGeneration);
  EXPECT_EQ(push.step, Step{5});
  EXPECT_EQ(push.examples, 8u);
  EXPECT_EQ(push.late_examples, 7u);
  EXPECT_EQ(push.computed_version, Version{11});
  EXPECT_EQ(push.read_form, ReadForm(CodecId::kBf16));
  EXPECT_EQ(push.payload.bytes(), Payload({1, 2, 3, 4}));
  EXPECT_EQ(push.rate_factor, 0.5f);
}

TEST_F(ConvertTest, OrdersSeedsBeforePushesBeforeReads) {
  WorkerFrame frame = WithPush(1, Payload({1, 2, 3, 4}));
  frame.reads.push_back({here_, {1}, {0}, kFp32});
  frame.seeds.push_back({here_, Payload({0, 0, 0, 0})});
  const auto groups = Events(frame).value();
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].events.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<SeedEvent>(groups[0].events[0]));
  EXPECT_TRUE(std::holds_alternative<PushEvent>(groups[0].events[1]));
  EXPECT_TRUE(std::holds_alternative<ReadEvent>(groups[0].events[2]));
}

TEST_F(ConvertTest, AShardOfAnotherServerIsRefused) {
  WorkerFrame frame = Frame();
  frame.reads.push_back({{2}, {}, {}, kFp32});
  EXPECT_EQ(ErrorOf(frame), "shard 2: does not exist (expected a shard below 2)");
  frame.reads[0].shard = elsewhere_;
  EXPECT_EQ(ErrorOf(frame), "shard " + std::to_string(elsewhere_.value) +
                                ": lives on another server (expected server 1, got server 0)");
}

TEST_F(ConvertTest, APayloadOfAnotherLengthIsRefused) {
  EXPECT_EQ(ErrorOf(WithPush(8, Payload({1, 2, 3}))),
            prefix_ + "fp32 payload of 4 values: wrong length (expected 17 bytes, got 13)");
  EXPECT_NE(ErrorOf(WithPush(8, ByteChain())), "none");
  EXPECT_NE(ErrorOf(WithPush(8, ByteChain(std::vector<std::byte>(17, std::byte{99})))), "none");
}

TEST_F(ConvertTest, APushOfWeightZeroHasNoPayload) {
  EXPECT_TRUE(Events(WithPush(0, ByteChain())).ok());
  EXPECT_EQ(ErrorOf(WithPush(0, Payload({1, 2, 3, 4}))),
            prefix_ + "payload: must be empty in a push of weight 0 (got 17 bytes)");
}

TEST_F(ConvertTest, NumbersThatCouldOverflowAreRefused) {
  WorkerFrame read = Frame();
  read.reads.push_back({here_, kLargestStep, {}, kFp32});
  EXPECT_TRUE(Events(read).ok());
  read.reads[0].step = {~uint64_t{0}};
  EXPECT_EQ(ErrorOf(read), prefix_ +
                               "step: too large (expected at most 4611686018427387904, got "
                               "18446744073709551615)");
  WorkerFrame push = WithPush(8, Payload({1, 2, 3, 4}));
  push.pushes[0].step = kLargestStep + 1;
  EXPECT_EQ(ErrorOf(push).find(prefix_ + "step: too large"), 0u);
  WorkerFrame late = WithPush(8, Payload({1, 2, 3, 4}));
  late.pushes[0].late_examples = kMostExamples + 1;
  EXPECT_EQ(ErrorOf(late), prefix_ +
                               "late_examples: too large (expected at most 1073741824, got "
                               "1073741825)");
  for (const float factor : {-1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    WorkerFrame rate = WithPush(8, Payload({1, 2, 3, 4}));
    rate.pushes[0].rate_factor = factor;
    EXPECT_EQ(ErrorOf(rate).find(prefix_ + "rate_factor: out of range (expected a finite number of "
                                           "at least 0, got "),
              0u);
  }
  EXPECT_EQ(ErrorOf(WithPush(kMostExamples + 1, Payload({1, 2, 3, 4})))
                .find(prefix_ + "examples: too large"),
            0u);
}

TEST_F(ConvertTest, ParametersAreReadInADenseCodec) {
  EXPECT_EQ(ErrorOf(WithPush(8, Payload({1, 2, 3, 4}), 6)),
            prefix_ + "read_codec: cannot carry parameters (expected a dense codec, got topk)");
  EXPECT_EQ(ErrorOf(WithPush(8, Payload({1, 2, 3, 4}), 77)),
            prefix_ +
                "read_codec: unknown number (expected the number of a dense codec, 64 or 65, "
                "got 77)");
  EXPECT_NE(ErrorOf(WithPush(8, Payload({1, 2, 3, 4}), 0)), "none");
}

TEST_F(ConvertTest, DeltasAreValidOnlyIfTheJobPublishesThem) {
  WorkerFrame frame = WithPush(8, Payload({1, 2, 3, 4}), kReadDeltas);
  frame.pushes[0].held_version = {12};
  frame.reads.push_back({here_, {1}, {12}, kReadPublished});
  EXPECT_EQ(
      ErrorOf(frame),
      prefix_ + "read_codec: this job does not publish deltas (expected a dense codec, got 64)");
  publishes_ = true;
  const auto groups = Events(frame).value();
  EXPECT_EQ(std::get<PushEvent>(groups[0].events.at(0)).read_form, ReadForm::Since(Version{12}));
  EXPECT_EQ(std::get<ReadEvent>(groups[0].events.at(1)).form, ReadForm::Published());
  EXPECT_TRUE(Events(WithPush(8, Payload({1, 2, 3, 4}))).ok()) << "masters are read all the same";
}

TEST_F(ConvertTest, ASeedIsFiniteFp32) {
  WorkerFrame frame = Frame();
  frame.seeds.push_back({here_, Payload({1, 2, 3, 4}, CodecId::kBf16)});
  EXPECT_EQ(ErrorOf(frame), prefix_ + "seed: must be fp32 (got bf16)");
  frame.seeds[0].payload = Payload({1, 2, std::numeric_limits<float>::infinity(), 4});
  EXPECT_EQ(ErrorOf(frame), prefix_ + "seed: has a NaN or an infinity");
}

TEST_F(ConvertTest, ASeedOfAnotherGenerationIsIgnored) {
  WorkerFrame frame = Frame();
  frame.seeds.push_back({here_, Payload({1, 2, 3, 4})});
  frame.generation = {9};
  EXPECT_TRUE(Events(frame).value().empty());
}

TEST_F(ConvertTest, ANonFinitePushPasses) {
  EXPECT_TRUE(Events(WithPush(8, Payload({1, 2, std::nanf(""), 4}))).ok());
}

TEST(PartitionOfTest, AnotherHashIsRefused) {
  JoinRequest request = Request();
  EXPECT_TRUE(PartitionOf(request, 2).ok());
  request.set_partition_hash(request.partition_hash() + 1);
  EXPECT_EQ(PartitionOf(request, 2).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(PartitionOfTest, AnotherNumberOfServersIsRefused) {
  const absl::Status status = PartitionOf(Request(), 3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "servers: differs from the job's (expected 3, got 2)");
}

TEST(PartitionOfTest, ASmallRequestForAHugeModelIsRefused) {
  JoinRequest request = Request();
  request.mutable_tensors(0)->set_shape(0, int64_t{1} << 36);
  const absl::Status status = PartitionOf(request, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "model: too many shards (expected at most 65536, got 524289 of at most 262144 values)");
}

TEST(PartitionOfTest, ANegativeShapeIsRefused) {
  JoinRequest request = Request();
  request.mutable_tensors(0)->set_shape(0, -3);
  EXPECT_EQ(PartitionOf(request, 2).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PartitionOfTest, TheRequestMustPlaceTensorsInTheJobsGroups) {
  JoinRequest request = Request();
  const std::vector<GroupSpec> groups = {
      {}, {.match = "b", .optimizer = {.kind = OptimizerKind::kLars}}};
  const absl::Status status = PartitionOf(request, 2, groups).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "tensor \"b\": another parameter group than in the job (expected group 1 in whole "
            "tensors, got group 0)");
  request.mutable_tensors(1)->set_group(1);
  request.mutable_tensors(1)->set_whole(true);
  std::vector<TensorShape> tensors = {{"a", {2, 2}}, {"b", {2, 2}}};
  ASSERT_EQ(PlaceTensors(groups, tensors), absl::OkStatus());
  request.set_partition_hash(Partition::Make(tensors, 0, 2)->hash());
  const auto partition = PartitionOf(request, 2, groups);
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_EQ(partition->tensors(), tensors);
  EXPECT_EQ(PartitionOf(request, 2).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace thinwire
