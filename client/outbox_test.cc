#include "client/outbox.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/partition.h"

namespace thinwire::client {
namespace {

constexpr CodecId kCodec = CodecId::kBf16;

std::vector<ShardId> Shards(std::vector<uint32_t> numbers) {
  std::vector<ShardId> shards;
  for (const uint32_t n : numbers) shards.push_back(ShardId{n});
  return shards;
}

PushEntry PushOf(uint32_t shard, uint64_t step, size_t bytes = 10) {
  return {.shard = ShardId{shard},
          .step = Step{step},
          .examples = 1,
          .payload = ByteChain(std::vector<std::byte>(bytes, std::byte{1}))};
}

// Of the eight shards of a matrix, the even ones.
class OutboxTest : public ::testing::Test {
 protected:
  WorkerFrame Next() {
    WorkerFrame frame;
    any_ = outbox_.TakeNext(replica_, kCodec, frame);
    return frame;
  }

  const Partition partition_ = *Partition::Make({{"w", {8, 4096}}}, 4096, 1);
  Replica replica_{partition_};
  Outbox outbox_{Shards({0, 2, 4, 6})};
  bool any_ = false;
};

TEST_F(OutboxTest, OneMessageHoldsManySmallPayloads) {
  for (const uint32_t s : {0, 2, 4}) outbox_.Push(PushOf(s, 7));
  const WorkerFrame frame = Next();
  ASSERT_EQ(frame.pushes.size(), 3u);
  EXPECT_EQ(frame.pushes[1].shard, ShardId{2});
  EXPECT_EQ(frame.pushes[1].read_codec, static_cast<uint32_t>(kCodec));
  EXPECT_TRUE(frame.reads.empty()) << "a push is the read of the next step";
  Next();
  EXPECT_FALSE(any_);
}

TEST_F(OutboxTest, DeltasAreReadOfWhatIsHeldAndElseTheWhole) {
  outbox_.Read(ShardId{2}, Step{7});
  outbox_.Push(PushOf(4, 7));
  const auto values = *MakeCodec({.id = CodecId::kFp32});
  std::vector<std::byte> payload(values->MaxPayloadBytes(4096));
  values->Encode(std::vector<float>(4096), RandomKeys(), payload);
  ASSERT_TRUE(replica_
                  .Merge({.shard = ShardId{2},
                          .version = Version{0},
                          .payload = ByteChain(std::move(payload))})
                  .ok());
  WorkerFrame frame;
  ASSERT_TRUE(outbox_.TakeNext(replica_, std::nullopt, frame));
  EXPECT_EQ(frame.reads.at(0).read_codec, kReadDeltas);
  EXPECT_EQ(frame.pushes.at(0).read_codec, kReadPublished);
}

TEST_F(OutboxTest, AnAnswerInSeveralEntriesIsAwaitedToItsLast) {
  outbox_.Read(ShardId{2}, Step{7});
  EXPECT_TRUE(outbox_.Awaits(ShardId{2}, Step{7}));
  EXPECT_TRUE(outbox_.Awaits(ShardId{2}, Step{7}));
  EXPECT_FALSE(outbox_.Awaits(ShardId{2}, Step{6}));
  EXPECT_FALSE(outbox_.Awaits(ShardId{9}, Step{7}));
  EXPECT_TRUE(outbox_.TakeAnswer(ShardId{2}, Step{7}));
  EXPECT_FALSE(outbox_.Awaits(ShardId{2}, Step{7}));
}

TEST_F(OutboxTest, AMessageEndsBeforeItGrowsOverItsSize) {
  outbox_.Push(PushOf(0, 7, kMessageBytes - 10));
  outbox_.Push(PushOf(2, 7, 20));
  outbox_.Push(PushOf(4, 7, kMessageBytes + 1));
  outbox_.Push(PushOf(6, 7));
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_EQ(Next().pushes.at(0).payload.size(), kMessageBytes + 1) << "the largest goes alone";
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_FALSE(outbox_.has_unsent());
}

TEST_F(OutboxTest, TheSameBytesGoAgainAfterALossUntilTheirVerdict) {
  outbox_.Push(PushOf(2, 7));
  outbox_.Push(PushOf(4, 7));
  const WorkerFrame first = Next();
  ASSERT_TRUE(outbox_.TakeVerdict(ShardId{4}, Step{7}).has_value());
  outbox_.Resend();
  const WorkerFrame again = Next();
  ASSERT_EQ(again.pushes.size(), 1u);
  EXPECT_EQ(again.pushes[0], first.pushes[0]);
  EXPECT_EQ(again.pushes[0].payload.pieces()[0].bytes.data(),
            first.pushes[0].payload.pieces()[0].bytes.data())
      << "shared, not copied";
  ASSERT_EQ(again.reads.size(), 1u) << "judged, but its parameters are still to come";
  EXPECT_EQ(again.reads[0], (ReadEntry{.shard = ShardId{4},
                                       .step = Step{8},
                                       .read_codec = static_cast<uint32_t>(kCodec)}));
}

TEST_F(OutboxTest, UnsentBytesAreThoseOfThePushesThatAreToBeSent) {
  outbox_.Push(PushOf(2, 7, 100));
  outbox_.Read(ShardId{6}, Step{7});
  outbox_.Push(PushOf(6, 7, 20));
  EXPECT_EQ(outbox_.unsent_bytes(), 120u);
  Next();
  EXPECT_EQ(outbox_.unsent_bytes(), 0u);
  outbox_.Resend();
  EXPECT_EQ(outbox_.unsent_bytes(), 120u);
  ASSERT_TRUE(outbox_.TakeVerdict(ShardId{2}, Step{7}).has_value());
  outbox_.Resend();
  EXPECT_EQ(outbox_.unsent_bytes(), 20u);
}

TEST_F(OutboxTest, AVerdictIsTakenOnceAndOnlyForItsStep) {
  outbox_.Push(PushOf(2, 7));
  EXPECT_FALSE(outbox_.TakeVerdict(ShardId{2}, Step{6}).has_value());
  EXPECT_FALSE(outbox_.TakeVerdict(ShardId{4}, Step{7}).has_value());
  EXPECT_FALSE(outbox_.TakeVerdict(ShardId{3}, Step{7}).has_value()) << "another server's shard";
  EXPECT_FALSE(outbox_.TakeVerdict(ShardId{999}, Step{7}).has_value());
  EXPECT_EQ(outbox_.unjudged(), Shards({2}));
  EXPECT_EQ(outbox_.TakeVerdict(ShardId{2}, Step{7})->step, Step{7});
  EXPECT_FALSE(outbox_.TakeVerdict(ShardId{2}, Step{7}).has_value());
  EXPECT_TRUE(outbox_.unjudged().empty());
}

TEST_F(OutboxTest, AnAnswerIsTakenOnceAndOnlyForTheStepThatIsWanted) {
  outbox_.Read(ShardId{2}, Step{3});
  outbox_.Read(ShardId{2}, Step{9});
  EXPECT_EQ(Next().reads.size(), 1u);
  EXPECT_FALSE(outbox_.TakeAnswer(ShardId{2}, Step{3})) << "of an older step than wanted";
  EXPECT_FALSE(outbox_.TakeAnswer(ShardId{5}, Step{9}));
  EXPECT_TRUE(outbox_.AwaitsAnswer(ShardId{2}));
  EXPECT_EQ(outbox_.unanswered(), Shards({2}));
  EXPECT_TRUE(outbox_.TakeAnswer(ShardId{2}, Step{9}));
  EXPECT_FALSE(outbox_.TakeAnswer(ShardId{2}, Step{9}));
  EXPECT_FALSE(outbox_.AwaitsAnswer(ShardId{2}));
}

TEST_F(OutboxTest, SeedsGoWithTheirReadsUntilTheFirstAnswer) {
  outbox_.Seed(ShardId{0});
  outbox_.Read(ShardId{0}, Step{0});
  outbox_.Read(ShardId{2}, Step{0});
  const WorkerFrame frame = Next();
  ASSERT_EQ(frame.seeds.size(), 1u);
  EXPECT_EQ(frame.seeds[0].payload, replica_.SeedPayload(ShardId{0}));
  EXPECT_EQ(frame.reads.size(), 2u);
  outbox_.Resend();
  EXPECT_EQ(Next().seeds.size(), 1u);
  ASSERT_TRUE(outbox_.TakeAnswer(ShardId{0}, Step{0}));
  outbox_.Resend();
  EXPECT_TRUE(Next().seeds.empty());
}

TEST_F(OutboxTest, WhatWasAnsweredWhileItWaitedIsNotSent) {
  outbox_.Read(ShardId{2}, Step{3});
  ASSERT_TRUE(outbox_.TakeAnswer(ShardId{2}, Step{3}));
  Next();
  EXPECT_FALSE(any_);
}

}  // namespace
}  // namespace thinwire::client
