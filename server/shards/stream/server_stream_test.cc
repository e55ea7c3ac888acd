#include "server/shards/stream/server_stream.h"

#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

// Creates a StreamLink and records the calls of its functions.
struct Wire {
  int reads = 0;
  std::vector<ServerFrame> frames;
  std::optional<absl::Status> end;
  uint64_t parameter_bytes = 0;

  std::shared_ptr<ServerStream> Open() {
    return std::make_shared<ServerStream>(
        StreamLink{[this] { ++reads; },
                   [this](const ByteChain& bytes) { frames.push_back(*ParseServerFrame(bytes)); },
                   [this](const absl::Status& status) { end = status; }},
        Generation{3}, Epoch{4}, [this](uint64_t bytes) { parameter_bytes += bytes; });
  }
};

VerdictEntry OfShard(uint32_t shard) {
  VerdictEntry verdict;
  verdict.shard = {shard};
  return verdict;
}

TEST(ServerStreamTest, EntriesGatherWhileAWriteIsInProgress) {
  Wire wire;
  const auto stream = wire.Open();
  for (uint32_t shard : {1, 2, 3}) stream->AddVerdict(OfShard(shard));
  ASSERT_EQ(wire.frames.size(), 1u);
  EXPECT_EQ(wire.frames[0].generation, Generation{3});
  EXPECT_EQ(wire.frames[0].epoch, Epoch{4});
  EXPECT_EQ(wire.frames[0].verdicts.size(), 1u);
  stream->OnWritten(true);
  ASSERT_EQ(wire.frames.size(), 2u);
  EXPECT_EQ(wire.frames[1].verdicts.size(), 2u);
  stream->OnWritten(true);
  EXPECT_EQ(wire.frames.size(), 2u);
}

TEST(ServerStreamTest, EndWaitsForTheCurrentWrite) {
  Wire wire;
  const auto stream = wire.Open();
  stream->AddVerdict(OfShard(1));
  stream->AddVerdict(OfShard(2));
  stream->End(absl::InvalidArgumentError("no"));
  EXPECT_FALSE(wire.end.has_value());
  stream->OnWritten(true);
  EXPECT_EQ(wire.end, absl::InvalidArgumentError("no"));
  EXPECT_EQ(wire.frames.size(), 1u);
}

TEST(ServerStreamTest, EndAfterFlushSendsTheRemainingEntries) {
  Wire wire;
  const auto stream = wire.Open();
  stream->AddVerdict(OfShard(1));
  stream->AddVerdict(OfShard(2));
  stream->EndAfterFlush(absl::OkStatus());
  stream->AddVerdict(OfShard(3));
  stream->OnWritten(true);
  EXPECT_FALSE(wire.end.has_value());
  stream->OnWritten(true);
  EXPECT_EQ(wire.end, absl::OkStatus());
  EXPECT_EQ(wire.frames.size(), 2u);
}

TEST(ServerStreamTest, CallsNothingAfterFinish) {
  Wire wire;
  const auto stream = wire.Open();
  stream->End(absl::OkStatus());
  stream->End(absl::InternalError("second"));
  stream->AddVerdict(OfShard(1));
  stream->AllowRead();
  EXPECT_EQ(wire.end, absl::OkStatus());
  EXPECT_TRUE(wire.frames.empty());
  EXPECT_EQ(wire.reads, 0);
}

TEST(ServerStreamTest, ABrokenWriteEndsTheStream) {
  Wire wire;
  const auto stream = wire.Open();
  stream->AddVerdict(OfShard(1));
  stream->AddVerdict(OfShard(2));
  stream->OnWritten(false);
  EXPECT_EQ(wire.end->code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(wire.frames.size(), 1u);
}

TEST(ServerStreamTest, DoesNotReadFromAPeerThatNeverReads) {
  Wire wire;
  const auto stream = wire.Open();
  stream->AllowRead();
  EXPECT_EQ(wire.reads, 1);
  for (size_t i = 0; i <= kMostEntries; ++i) stream->AddVerdict(OfShard(1));
  stream->AllowRead();
  EXPECT_EQ(wire.reads, 1);
  stream->OnWritten(true);
  EXPECT_EQ(wire.reads, 2);
}

TEST(ServerStreamTest, CountsAnswersWhenTheyAreWritten) {
  Wire wire;
  const auto slots = std::make_shared<PublishedSlots>();
  slots->Put(CodecId::kFp32, {Version{1}, Step{1}, ByteChain(std::vector<std::byte>(100))});
  const auto stream = wire.Open();
  stream->AddVerdict(OfShard(1));
  stream->AddAnswer({1}, {1}, CodecId::kFp32, slots);
  EXPECT_EQ(wire.parameter_bytes, 0u);
  stream->OnWritten(true);
  EXPECT_EQ(wire.parameter_bytes, 100u);
}

}  // namespace
}  // namespace thinwire
