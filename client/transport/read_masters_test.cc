#include "client/transport/read_masters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/testing/in_process_transport.h"

namespace thinwire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

MastersChunk Chunk(const std::string& tensor, uint64_t offset, const std::vector<float>& values) {
  MastersChunk chunk;
  chunk.set_tensor(tensor);
  chunk.set_offset(offset);
  chunk.set_values(values.data(), values.size() * sizeof(float));
  return chunk;
}

// A server that answers the calls of Masters with prepared replies, in order, and then with errors.
class ScriptedMasters final : public InProcessServer {
 public:
  void Opened(uint64_t, Peer) override {}
  void Frame(uint64_t, const ByteChain&) override {}
  void Closed(uint64_t) override {}
  absl::StatusOr<JoinReply> Join(const JoinRequest&) override { return JoinReply(); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const HeartbeatRequest&) override {
    return HeartbeatReply();
  }
  absl::StatusOr<LeaveReply> Leave(const LeaveRequest&) override { return LeaveReply(); }
  absl::StatusOr<std::vector<MastersChunk>> Masters(const MastersRequest&) override {
    ++call_count;
    if (replies.empty()) return absl::UnavailableError("no reply is prepared");
    const auto reply = replies.front();
    replies.pop_front();
    return reply;
  }

  // A test changes both only while no call is pending.
  std::deque<absl::StatusOr<std::vector<MastersChunk>>> replies;
  int call_count = 0;
};

class ReadMastersTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::vector<float>>> Read(absl::Duration patience = absl::Minutes(1)) {
    return ReadMasters(transport_, clock_, stop_, patience, partition_, MastersRequest());
  }

  // Server 1 has the vector, because server 0 has the larger matrix.
  const Partition partition_ = Partition::Make({{"w", {2, 3}}, {"b", {2}}}, 0, 2).value();
  ScriptedMasters servers_[2];
  InProcessTransport transport_{{&servers_[0], &servers_[1]}};
  SteadyClock clock_;
  const std::shared_ptr<StopSignal> stop_ = std::make_shared<StopSignal>();
};

TEST_F(ReadMastersTest, TheTensorsOfAllServersArriveWhole) {
  servers_[0].replies = {{{Chunk("w", 4, {5, 6}), Chunk("w", 0, {1, 2, 3, 4})}}};
  servers_[1].replies = {{{Chunk("b", 0, {7, 8})}}};
  const auto tensors = Read();
  ASSERT_TRUE(tensors.ok()) << tensors.status();
  EXPECT_THAT(*tensors, ElementsAre(ElementsAre(1, 2, 3, 4, 5, 6), ElementsAre(7, 8)));
}

TEST_F(ReadMastersTest, AnUnreachableServerIsCalledAgain) {
  servers_[0].replies = {{{Chunk("w", 0, {1, 2, 3, 4, 5, 6})}}};
  servers_[1].replies = {absl::UnavailableError("connection refused"), {{Chunk("b", 0, {7, 8})}}};
  EXPECT_TRUE(Read().ok());
  EXPECT_EQ(servers_[1].call_count, 2);
}

TEST_F(ReadMastersTest, AFinalErrorNamesTheServer) {
  servers_[0].replies = {absl::FailedPreconditionError("shard 1: has no values yet")};
  EXPECT_EQ(Read().status(),
            absl::FailedPreconditionError("server 0 (in process): shard 1: has no values yet"));
  EXPECT_EQ(servers_[0].call_count, 1);
}

TEST_F(ReadMastersTest, AllServersAreCalledAtTheSameTime) {
  servers_[0].replies = {absl::FailedPreconditionError("has no values yet")};
  EXPECT_FALSE(Read().ok());
  absl::Notification left;  // the transport makes this call after the pending ones
  transport_.Leave(ServerId{1}, LeaveRequest(), absl::Minutes(1),
                   [&](const absl::StatusOr<LeaveReply>&) { left.Notify(); });
  left.WaitForNotification();
  EXPECT_EQ(servers_[1].call_count, 1);
}

TEST_F(ReadMastersTest, WithoutPatienceAServerIsCalledOnce) {
  servers_[0].replies = {absl::UnavailableError("connection refused")};
  EXPECT_EQ(Read(absl::ZeroDuration()).status(),
            absl::UnavailableError("server 0 (in process): connection refused"));
}

TEST_F(ReadMastersTest, AStopEndsTheRead) {
  transport_.Mute(ServerId{0}, true);
  stop_->Set();
  EXPECT_TRUE(absl::IsCancelled(Read().status()));
}

TEST_F(ReadMastersTest, AChunkThatDoesNotFitNamesTheServer) {
  servers_[0].replies = {{{Chunk("v", 0, {1})}}};
  EXPECT_EQ(
      Read().status(),
      absl::DataLossError("server 0 (in process): masters of v: the model has no such tensor"));
}

TEST_F(ReadMastersTest, AServerThatSendsTooMuchIsNamed) {
  servers_[0].replies = {std::vector<MastersChunk>(100'000, Chunk("w", 0, {}))};
  const absl::Status status = Read().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("server 0 (in process): masters: too long (expected"));
}

class MastersAssemblyTest : public ::testing::Test {
 protected:
  std::string Problem(const MastersChunk& chunk) {
    const absl::Status status = assembly_.Add(chunk);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    return std::string(status.message());
  }

  const Partition partition_ = Partition::Make({{"w", {2, 3}}, {"b", {2}}}, 0, 1).value();
  MastersAssembly assembly_{partition_};
};

TEST_F(MastersAssemblyTest, AValueThatArrivesTwiceIsAnError) {
  ASSERT_TRUE(assembly_.Add(Chunk("w", 2, {3, 4})).ok());
  EXPECT_EQ(Problem(Chunk("w", 2, {3})), "masters of w: value 2 arrived twice");
  EXPECT_EQ(Problem(Chunk("w", 0, {1, 2, 3})), "masters of w: value 2 arrived twice");
  EXPECT_EQ(Problem(Chunk("w", 3, {4, 5})), "masters of w: value 3 arrived twice");
  EXPECT_TRUE(assembly_.Add(Chunk("w", 0, {1, 2})).ok());
  EXPECT_TRUE(assembly_.Add(Chunk("w", 4, {5, 6})).ok());
}

TEST_F(MastersAssemblyTest, AMissingValueIsAnError) {
  ASSERT_TRUE(assembly_.Add(Chunk("w", 0, {1, 2})).ok());
  ASSERT_TRUE(assembly_.Add(Chunk("w", 3, {4, 5, 6})).ok());
  ASSERT_TRUE(assembly_.Add(Chunk("b", 0, {7, 8})).ok());
  EXPECT_EQ(assembly_.Finish().status(),
            absl::DataLossError("masters of w: value 2 is missing (expected 6 values)"));
}

TEST_F(MastersAssemblyTest, AMissingTensorIsAnError) {
  ASSERT_TRUE(assembly_.Add(Chunk("w", 0, {1, 2, 3, 4, 5, 6})).ok());
  EXPECT_EQ(assembly_.Finish().status(),
            absl::DataLossError("masters of b: value 0 is missing (expected 2 values)"));
}

TEST_F(MastersAssemblyTest, AValueOutsideItsTensorIsAnError) {
  EXPECT_THAT(Problem(Chunk("b", 1, {1, 2})), HasSubstr("got 2 from value 1"));
  EXPECT_THAT(Problem(Chunk("b", ~uint64_t{0}, {1})), HasSubstr("value out of range"));
}

TEST_F(MastersAssemblyTest, APartOfAValueIsAnError) {
  MastersChunk chunk = Chunk("w", 0, {1});
  chunk.mutable_values()->push_back('x');
  EXPECT_EQ(Problem(chunk),
            "masters of w: wrong length at value 0 (expected a multiple of 4 bytes, got 5)");
}

}  // namespace
}  // namespace thinwire::client
