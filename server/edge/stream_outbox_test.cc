#include "server/edge/stream_outbox.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

Published OfBytes(size_t bytes, uint64_t version) {
  return {Version{version}, Step{version}, ByteChain(std::vector<std::byte>(bytes))};
}

TEST(StreamOutboxTest, VerdictsComeFirstAndTheHighestShardsNext) {
  PublishedSlots slots;
  slots.Put(CodecId::kFp32, OfBytes(10, 4));
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

TEST(StreamOutboxTest, AnAnswerIsTheNewestVersionWhenItsMessageIsMade) {
  PublishedSlots slots;
  slots.Put(CodecId::kFp32, OfBytes(10, 1));
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {1}, CodecId::kFp32, slots);
  slots.Put(CodecId::kFp32, OfBytes(20, 2));
  const ServerFrame frame = outbox.Next();
  EXPECT_EQ(frame.parameters[0].version, Version{2});
  EXPECT_EQ(frame.parameters[0].payload.size(), 20u);
}

TEST(StreamOutboxTest, AShardHasOnePendingAnswerOfTheLargestStep) {
  PublishedSlots slots;
  StreamOutbox outbox;
  outbox.AddAnswer({0}, {2}, CodecId::kFp32, slots);
  outbox.AddAnswer({0}, {3}, CodecId::kFp32, slots);
  outbox.AddAnswer({0}, {1}, CodecId::kFp32, slots);
  const ServerFrame frame = outbox.Next();
  ASSERT_EQ(frame.parameters.size(), 1u);
  EXPECT_EQ(frame.parameters[0].step, Step{3});
}

TEST(StreamOutboxTest, AMessageHoldsAboutOneMebibyte) {
  PublishedSlots slots;
  slots.Put(CodecId::kFp32, OfBytes(kMessagePayloadBytes / 2, 1));
  slots.Put(CodecId::kBf16, OfBytes(kMessagePayloadBytes * 2, 1));
  StreamOutbox outbox;
  for (uint32_t shard = 0; shard < 3; ++shard)
    outbox.AddAnswer({shard}, {1}, CodecId::kFp32, slots);
  outbox.AddAnswer({3}, {1}, CodecId::kBf16, slots);
  std::vector<size_t> counts;
  while (!outbox.empty()) counts.push_back(outbox.Next().parameters.size());
  EXPECT_EQ(counts, (std::vector<size_t>{1, 2, 1}));
}

TEST(StreamOutboxTest, AnAnswerTakesBackTheWaitNotice) {
  PublishedSlots slots;
  StreamOutbox outbox;
  WaitingEntry wait;
  wait.shard = {4};
  outbox.AddWait(wait);
  outbox.AddAnswer({4}, {1}, CodecId::kFp32, slots);
  outbox.AddWait(wait);
  EXPECT_EQ(outbox.entry_count(), 1u);
  EXPECT_TRUE(outbox.Next().waits.empty());
}

TEST(StreamOutboxTest, AWaitNoticeIsReplacedByItsSuccessor) {
  StreamOutbox outbox;
  WaitingEntry wait;
  wait.shard = {4};
  outbox.AddWait(wait);
  wait.frontier = {9};
  outbox.AddWait(wait);
  EXPECT_EQ(outbox.Next().waits, std::vector<WaitingEntry>{wait});
}

TEST(StreamOutboxTest, NoParametersOvertakeAVerdict) {
  PublishedSlots slots;
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
