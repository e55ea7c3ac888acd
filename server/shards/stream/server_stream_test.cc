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
  uint64_t written_bytes = 0;
  uint64_t sent_bytes = 0;  // as the stream counts them
  uint64_t parameter_bytes = 0;
  // The turns that a stream of OpenLimited awaits, of writes and of reads.
  std::vector<absl::AnyInvocable<void()>> writes_awaited;
  std::vector<absl::AnyInvocable<void()>> reads_awaited;

  StreamLink Link() {
    return {.read = [this] { ++reads; },
            .write =
                [this](const ByteChain& bytes) {
                  written_bytes += bytes.size();
                  frames.push_back(*ParseServerFrame(bytes));
                },
            .finish = [this](const absl::Status& status) { end = status; }};
  }
  std::shared_ptr<ServerStream> Open(StreamLink link) {
    return std::make_shared<ServerStream>(std::move(link), Generation{3}, Epoch{4},
                                          [this](uint64_t sent, uint64_t payload) {
                                            sent_bytes += sent;
                                            parameter_bytes += payload;
                                          });
  }
  std::shared_ptr<ServerStream> Open() { return Open(Link()); }
  std::shared_ptr<ServerStream> OpenLimited() {
    StreamLink link = Link();
    link.await_write = [this](absl::AnyInvocable<void()> task) {
      writes_awaited.push_back(std::move(task));
    };
    link.await_read = [this](absl::AnyInvocable<void()> task) {
      reads_awaited.push_back(std::move(task));
    };
    return Open(std::move(link));
  }
  // Gives the last awaited turn.
  static void Give(std::vector<absl::AnyInvocable<void()>>& awaited) {
    absl::AnyInvocable<void()> task = std::move(awaited.back());
    awaited.pop_back();
    task();
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

TEST(ServerStreamTest, TheEntriesOfABatchShareAMessage) {
  Wire wire;
  const auto stream = wire.Open();
  {
    StreamBatch batch;
    for (uint32_t shard : {1, 2, 3}) stream->AddVerdict(OfShard(shard), &batch);
    EXPECT_TRUE(wire.frames.empty());
  }
  ASSERT_EQ(wire.frames.size(), 1u);
  EXPECT_EQ(wire.frames[0].verdicts.size(), 3u);
}

TEST(ServerStreamTest, AnEntryOutsideABatchTakesThoseOfTheBatchAlong) {
  Wire wire;
  const auto stream = wire.Open();
  {
    StreamBatch batch;
    stream->AddVerdict(OfShard(1), &batch);
    stream->AddVerdict(OfShard(2));
    ASSERT_EQ(wire.frames.size(), 1u);
    EXPECT_EQ(wire.frames[0].verdicts.size(), 2u);
  }
  stream->OnWritten(true);
  EXPECT_EQ(wire.frames.size(), 1u);
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

TEST(ServerStreamTest, CountsTheBytesOfMessages) {
  Wire wire;
  const auto stream = wire.Open();
  stream->AddVerdict(OfShard(1));
  stream->AddVerdict(OfShard(2));
  stream->OnWritten(true);
  ASSERT_EQ(wire.frames.size(), 2u);
  EXPECT_EQ(wire.sent_bytes, wire.written_bytes);
}

TEST(ServerStreamTest, AMessageAfterTheFirstIsMadeInItsTurn) {
  Wire wire;
  const auto stream = wire.OpenLimited();
  stream->AddVerdict(OfShard(1));
  EXPECT_EQ(wire.frames.size(), 1u) << "the first message does not wait";
  stream->OnWritten(true);
  stream->AddVerdict(OfShard(2));
  stream->AddVerdict(OfShard(3));
  EXPECT_EQ(wire.frames.size(), 1u);
  ASSERT_EQ(wire.writes_awaited.size(), 1u) << "one turn at a time";
  wire.Give(wire.writes_awaited);
  ASSERT_EQ(wire.frames.size(), 2u);
  EXPECT_EQ(wire.frames[1].verdicts.size(), 2u) << "with the entries of the time of its turn";
  stream->OnWritten(true);
  EXPECT_TRUE(wire.writes_awaited.empty()) << "a stream without entries awaits no turn";
}

TEST(ServerStreamTest, AFrameAfterTheFirstIsRequestedInItsTurn) {
  Wire wire;
  const auto stream = wire.OpenLimited();
  stream->AllowRead();
  EXPECT_EQ(wire.reads, 1);
  stream->AllowRead();
  EXPECT_EQ(wire.reads, 1);
  ASSERT_EQ(wire.reads_awaited.size(), 1u);
  wire.Give(wire.reads_awaited);
  EXPECT_EQ(wire.reads, 2);
}

TEST(ServerStreamTest, EndAfterFlushAwaitsTurns) {
  Wire wire;
  const auto stream = wire.OpenLimited();
  stream->AddVerdict(OfShard(1));
  stream->OnWritten(true);
  stream->AddVerdict(OfShard(2));
  stream->EndAfterFlush(absl::OkStatus());
  EXPECT_FALSE(wire.end.has_value());
  wire.Give(wire.writes_awaited);
  stream->OnWritten(true);
  EXPECT_EQ(wire.end, absl::OkStatus());
  EXPECT_EQ(wire.frames.size(), 2u);
}

TEST(ServerStreamTest, EndDoesNotAwaitATurn) {
  Wire wire;
  auto stream = wire.OpenLimited();
  stream->AddVerdict(OfShard(1));
  stream->OnWritten(true);
  stream->AddVerdict(OfShard(2));
  stream->AllowRead();
  stream->AllowRead();
  stream->End(absl::CancelledError("gone"));
  EXPECT_EQ(wire.end, absl::CancelledError("gone"));
  wire.Give(wire.writes_awaited);
  stream.reset();
  wire.Give(wire.reads_awaited);
  EXPECT_EQ(wire.frames.size(), 1u);
  EXPECT_EQ(wire.reads, 1);
}

}  // namespace
}  // namespace thinwire
