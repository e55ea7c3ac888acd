#include "server/shards/stream/stream_outbox.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

EncodedParameters OfBytes(size_t bytes, uint64_t version) {
  return {Version{version}, Step{version}, ByteChain(std::vector<std::byte>(bytes))};
}

TEST(StreamOutboxTest, SendsVerdictsFirstAndThenTheHighestShards) {
  const auto slots = std::make_shared<PublishedSlots>();
  slots->Put(CodecId::kFp32, OfBytes(10, 4));
  StreamOutbox outbox;
  for (uint32_t shard : {1, 3, 2}) outbox.AddAnswer({shard}, {5}, CodecId::kFp32, slots);
  VerdictEntry verdict;
  verdict.shard = {1};
  outbox.AddVerdict(verdict);
  const ServerFrame frame = outbox.Next();
  EXPECT_EQ(frame.verdicts, std::vector<VerdictEntry>{verdict});
  ASSERT_EQ(frame.parameters.size(), 3u);
  EXPECT_EQ(frame.parameters[0].shard, ShardId{3});
  EXPECT_EQ(frame.parameters[2].shard, ShardId{1});
  EXPECT_EQ(frame.parameters[0].step, Step{5});
  EXPECT_TRUE(outbox.empty());
}

TEST(StreamOutboxTest, AnAnswerHasTheNewestVersionWhenItsMessageIsMade) {
  const auto slots = std::make_shared<PublishedSlots>();
  slots->Put(CodecId::kFp32, OfBytes(10, 1));
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {1}, CodecId::kFp32, slots);
  slots->Put(CodecId::kFp32, OfBytes(20, 2));
  const ServerFrame frame = outbox.Next();
  EXPECT_EQ(frame.parameters[0].version, Version{2});
  EXPECT_EQ(frame.parameters[0].payload.size(), 20u);
}

TEST(StreamOutboxTest, ASelectionIsSentWithItsVersion) {
  const auto list = [](size_t bytes) { return ByteChain(std::vector<std::byte>(bytes)); };
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {1}, CodecId::kFp32, slots);
  slots->Put(CodecId::kFp32, {Version{2}, Step{3}, list(20), list(7)});
  const ServerFrame frame = outbox.Next();
  EXPECT_EQ(frame.parameters[0].frontier, Step{3});
  EXPECT_EQ(frame.parameters[0].selected, list(7));
}

PublishedDelta Delta(uint64_t base, uint64_t version) {
  return {.kind = PublishedDelta::Kind::kAdd,
          .base = Version{base},
          .version = Version{version},
          .hash = version,
          .payload = ByteChain(std::vector<std::byte>(version))};
}

// Returns a version log with one delta per version from BEGIN to END.
std::shared_ptr<const VersionLog> Log(uint64_t begin, uint64_t end) {
  auto log = std::make_shared<VersionLog>(Version{begin}, 1000);
  for (uint64_t v = begin; v < end; ++v) log->Append(Delta(v, v + 1));
  return log;
}

TEST(StreamOutboxTest, ASlowReaderOfDeltasGetsTheNewestVersion) {
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  slots->PutPublished({.log = Log(3, 5), .frontier = Step{8}});
  outbox.AddAnswer({0}, {9}, ReadForm::Since(Version{4}), slots);
  slots->PutPublished({.log = Log(3, 7), .frontier = Step{10}});
  const ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 3u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(frame.parameters[i], (ParametersEntry{.shard = {0},
                                                    .step = {9},
                                                    .version = {5 + i},
                                                    .base_version = {4 + i},
                                                    .kind = 1,
                                                    .frontier = {10},
                                                    .more = i < 2,
                                                    .published_hash = 5 + i,
                                                    .payload = Delta(4 + i, 5 + i).payload}));
  }
}

// Returns all values of VERSION.
std::shared_ptr<const PublishedDelta> Full(uint64_t version) {
  return std::make_shared<const PublishedDelta>(PublishedDelta{
      .version = Version{version}, .payload = ByteChain(std::vector<std::byte>(50))});
}

TEST(StreamOutboxTest, ASelectionIsSentWithTheLastDelta) {
  const auto list = [](size_t bytes) { return ByteChain(std::vector<std::byte>(bytes)); };
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {9}, ReadForm::Since(Version{4}), slots);
  slots->PutPublished({.log = Log(3, 6), .frontier = Step{10}, .selected_list = list(8)});
  ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 2u);
  EXPECT_TRUE(frame.parameters[0].selected.empty());
  EXPECT_EQ(frame.parameters[1].selected, list(8));
}

TEST(StreamOutboxTest, AReaderWhoseVersionIsNotInTheLogGetsAFullCopyAndTheDeltasSince) {
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  outbox.AddAnswer({2}, {9}, ReadForm::Since(Version{4}), slots);
  outbox.AddAnswer({1}, {9}, ReadForm::Published(), slots);
  slots->PutPublished({.log = Log(6, 8), .full = Full(7), .frontier = Step{10}});
  const ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const ParametersEntry& entry = frame.parameters[i];
    const bool full = i % 2 == 0;
    EXPECT_EQ(entry.kind, full ? 0u : 1u);
    EXPECT_EQ(entry.version, Version{full ? 7u : 8u});
    EXPECT_EQ(entry.more, full);
    EXPECT_EQ(entry.frontier, Step{10});
  }
}

// A worker with several reads under way names the version that it holds, not the one that is on its
// way.
TEST(StreamOutboxTest, DeltasMayBeginWhereTheLastAnswerOfTheStreamEnded) {
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  ReadForm form = ReadForm::Since(Version{4});
  form.follows = true;
  slots->PutPublished({.log = Log(3, 6), .frontier = Step{8}});
  outbox.AddAnswer({0}, {9}, form, slots, {.count = 2, .holds_pushes = true});
  ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 2u);
  EXPECT_EQ(frame.parameters[0].steps_ahead, 2u);
  EXPECT_TRUE(frame.parameters[1].holds_pushes);
  slots->PutPublished({.log = Log(3, 7), .frontier = Step{8}});
  outbox.AddAnswer({0}, {10}, form, slots);
  frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 1u);
  EXPECT_EQ(frame.parameters[0].base_version, Version{6});
  outbox.AddAnswer({0}, {11}, ReadForm::Since(Version{4}), slots);
  EXPECT_EQ(outbox.Next().parameters.size(), 3u) << "the reader does not say that it follows";
}

TEST(StreamOutboxTest, AReaderOfTheNewestVersionLearnsThatNothingChanged) {
  const auto slots = std::make_shared<PublishedSlots>();
  slots->PutPublished({.log = Log(3, 5), .frontier = Step{8}});
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {9}, ReadForm::Since(Version{5}), slots);
  const ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 1u);
  EXPECT_EQ(frame.parameters[0].base_version, Version{5});
  EXPECT_EQ(frame.parameters[0].version, Version{5});
  EXPECT_TRUE(frame.parameters[0].payload.empty());
}

TEST(StreamOutboxTest, AShardHasOnePendingAnswerForTheLargestStep) {
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {2}, CodecId::kFp32, slots);
  outbox.AddAnswer({0}, {3}, CodecId::kFp32, slots);
  outbox.AddAnswer({0}, {1}, CodecId::kFp32, slots);
  const ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 1u);
  EXPECT_EQ(frame.parameters[0].step, Step{3});
}

TEST(StreamOutboxTest, AMessageHoldsAboutOneMebibyte) {
  const auto slots = std::make_shared<PublishedSlots>();
  slots->Put(CodecId::kFp32, OfBytes(kMessagePayloadBytes / 2, 1));
  slots->Put(CodecId::kBf16, OfBytes(kMessagePayloadBytes * 2, 1));
  StreamOutbox outbox;
  for (uint32_t shard = 0; shard < 3; ++shard)
    outbox.AddAnswer({shard}, {1}, CodecId::kFp32, slots);
  outbox.AddAnswer({3}, {1}, CodecId::kBf16, slots);
  std::vector<size_t> counts;
  while (!outbox.empty()) counts.push_back(outbox.Next().parameters.size());
  EXPECT_EQ(counts, (std::vector<size_t>{1, 2, 1}));
}

TEST(StreamOutboxTest, AnAnswerReplacesTheWaitNotice) {
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  WaitingEntry wait;
  wait.shard = {4};
  outbox.AddWaiting(wait);
  outbox.AddAnswer({4}, {1}, CodecId::kFp32, slots);
  outbox.AddWaiting(wait);
  EXPECT_EQ(outbox.entry_count(), 1u);
  EXPECT_TRUE(outbox.Next().waits.empty());
}

TEST(StreamOutboxTest, AWaitNoticeReplacesAnOlderOne) {
  StreamOutbox outbox;
  WaitingEntry wait;
  wait.shard = {4};
  outbox.AddWaiting(wait);
  wait.frontier = {9};
  outbox.AddWaiting(wait);
  EXPECT_EQ(outbox.Next().waits, std::vector<WaitingEntry>{wait});
}

TEST(StreamOutboxTest, NoParametersOvertakeAVerdict) {
  const auto slots = std::make_shared<PublishedSlots>();
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {1}, CodecId::kFp32, slots);
  for (size_t i = 0; i < kMostEntries; ++i) outbox.AddVerdict({});
  size_t verdicts = 0;
  while (!outbox.empty()) {
    const ServerFrame frame = outbox.Next();
    verdicts += frame.verdicts.size();
    EXPECT_EQ(frame.parameters.empty(), verdicts < kMostEntries);
  }
  EXPECT_EQ(verdicts, kMostEntries);
}

}  // namespace
}  // namespace thinwire
