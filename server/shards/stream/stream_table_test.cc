#include "server/shards/stream/stream_table.h"

#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

constexpr WorkerId kW{1};

// Returns a stream that stores the status with which it ends in END.
std::shared_ptr<ServerStream> StreamInto(std::optional<absl::Status>& end) {
  return std::make_shared<ServerStream>(
      StreamLink{[] {}, [](const ByteChain&) {}, [&end](const absl::Status& s) { end = s; }},
      Generation{1}, Epoch{1}, [](uint64_t, uint64_t) {});
}

constexpr ShardId kShard{7};

TEST(StreamTableTest, AProcessMustHaveJoined) {
  StreamTable table(2);
  std::optional<absl::Status> end;
  const auto stream = StreamInto(end);
  EXPECT_EQ(table.Register({2}, {1}, stream).message(),
            "worker: not a worker of this job (expected below 2, got 2)");
  EXPECT_EQ(table.Register(kW, {1}, stream).code(), absl::StatusCode::kFailedPrecondition);
  table.Admit(kW, {1});
  EXPECT_TRUE(table.Register(kW, {1}, stream).ok());
  EXPECT_EQ(table.Register(kW, {2}, stream).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(table.Find(kW, {1}, kShard), stream);
}

TEST(StreamTableTest, ASecondStreamOfAProcessEndsTheFirst) {
  StreamTable table(2);
  std::optional<absl::Status> first_end, second_end;
  const auto first = StreamInto(first_end);
  const auto second = StreamInto(second_end);
  table.Admit(kW, {1});
  ASSERT_TRUE(table.Register(kW, {1}, first).ok());
  ASSERT_TRUE(table.Register(kW, {1}, first).ok());
  EXPECT_FALSE(first_end.has_value());
  ASSERT_TRUE(table.Register(kW, {1}, second).ok());
  EXPECT_EQ(first_end->code(), absl::StatusCode::kAborted);
  EXPECT_EQ(table.Find(kW, {1}, kShard), second);
  // Removing `first`, which `second` has replaced, must not remove `second`.
  table.Remove(first.get());
  EXPECT_EQ(table.Find(kW, {1}, kShard), second);
  table.Remove(second.get());
  EXPECT_EQ(table.Find(kW, {1}, kShard), nullptr);
}

TEST(StreamTableTest, AFencedProcessIsRegisteredButNotFound) {
  StreamTable table(2);
  std::optional<absl::Status> old_end, new_end;
  const auto old_stream = StreamInto(old_end);
  const auto new_stream = StreamInto(new_end);
  table.Admit(kW, {1});
  ASSERT_TRUE(table.Register(kW, {1}, old_stream).ok());
  table.Admit(kW, {2});
  EXPECT_EQ(table.Find(kW, {1}, kShard), nullptr);
  ASSERT_TRUE(table.Register(kW, {2}, new_stream).ok());
  ASSERT_TRUE(table.Register(kW, {1}, old_stream).ok());
  EXPECT_FALSE(old_end.has_value());
  EXPECT_EQ(table.Find(kW, {2}, kShard), new_stream);
  EXPECT_EQ(table.All().size(), 1u);
}

TEST(StreamTableTest, TheEndOfANewestProcesssStreamIsReported) {
  int ended_count = 0;
  StreamTable table(2, [&ended_count] { ++ended_count; });
  std::optional<absl::Status> end;
  const auto stream = StreamInto(end);
  table.Remove(stream.get());
  EXPECT_EQ(ended_count, 0);
  table.Admit(kW, {1});
  ASSERT_TRUE(table.Register(kW, {1}, stream).ok());
  table.Remove(stream.get());
  EXPECT_EQ(ended_count, 1);
}

TEST(StreamTableTest, TheMembersOfAWorkerHaveStreamsAndShardsOfTheirOwn) {
  StreamTable table(2, nullptr, /*member_count=*/2);
  std::optional<absl::Status> first_end, second_end;
  const auto first = StreamInto(first_end);
  const auto second = StreamInto(second_end);
  table.Admit(kW, {1}, 0, std::vector<ShardId>{{0}, {2}});
  ASSERT_TRUE(table.Register(kW, {1}, first, 0).ok());
  EXPECT_EQ(table.Find(kW, {1}, ShardId{1}), nullptr) << "its owner has not joined";
  table.Admit(kW, {1}, 1, std::vector<ShardId>{{1}});
  ASSERT_TRUE(table.Register(kW, {1}, second, 1).ok());
  EXPECT_EQ(table.Register(kW, {1}, second, 2).message(),
            "member: not a member of a worker (expected below 2, got 2)");
  EXPECT_FALSE(first_end.has_value());
  EXPECT_EQ(table.Find(kW, {1}, ShardId{2}), first);
  EXPECT_EQ(table.Find(kW, {1}, ShardId{1}), second);
  EXPECT_TRUE(table.Owns(kW, 1, ShardId{1}));
  EXPECT_FALSE(table.Owns(kW, 0, ShardId{1}));
  EXPECT_EQ(table.All().size(), 2u);
  // The next processes divide the shards in another way.
  table.Admit(kW, {2}, 0, std::vector<ShardId>{{1}});
  EXPECT_FALSE(table.Owns(kW, 0, ShardId{2}));
  table.Remove(second.get());
  EXPECT_EQ(table.All().size(), 1u);
}

}  // namespace
}  // namespace thinwire
