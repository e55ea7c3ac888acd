#include "client/exchange/send_queue.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/partition.h"

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

// A matrix of eight shards, and a send queue for the shards with even numbers.
class SendQueueTest : public ::testing::Test {
 protected:
  WorkerFrame Next() {
    WorkerFrame frame;
    any_ = queue_.FillMessage(replica_, kCodec, frame);
    return frame;
  }

  // The parameters of SHARD for STEP arrive and let the worker push the steps up to LAST.
  bool Finish(uint32_t shard, uint64_t step, std::optional<uint64_t> last = std::nullopt) {
    const bool awaited = queue_.FinishRead(ShardId{shard}, Step{step}, Step{last.value_or(step)});
    if (awaited) queue_.HoldParameters(ShardId{shard}, Step{step});
    return awaited;
  }

  const Partition partition_ = *Partition::Make({{"w", {8, 4096}}}, 4096, 1);
  Replica replica_{partition_};
  SendQueue queue_{Shards({0, 2, 4, 6})};
  bool any_ = false;
};

TEST_F(SendQueueTest, OneMessageHoldsManySmallPayloads) {
  for (const uint32_t s : {0, 2, 4}) queue_.Push(PushOf(s, 7));
  const WorkerFrame frame = Next();
  ASSERT_EQ(frame.pushes.size(), 3u);
  EXPECT_EQ(frame.pushes[1].shard, ShardId{2});
  EXPECT_EQ(frame.pushes[1].read_codec, static_cast<uint32_t>(kCodec));
  EXPECT_TRUE(frame.reads.empty()) << "a push is the read of the next step";
  Next();
  EXPECT_FALSE(any_);
}

TEST_F(SendQueueTest, AHeldShardIsReadAsDeltasAndOthersInFull) {
  queue_.Read(ShardId{2}, Step{7});
  queue_.Push(PushOf(4, 7));
  const auto values = *MakeCodec({.id = CodecId::kFp32});
  std::vector<std::byte> payload(values->MaxPayloadBytes(4096));
  values->Encode(std::vector<float>(4096), RandomKeys(), payload);
  ASSERT_TRUE(replica_
                  .Merge({.shard = ShardId{2},
                          .version = Version{0},
                          .payload = ByteChain(std::move(payload))})
                  .ok());
  WorkerFrame frame;
  ASSERT_TRUE(queue_.FillMessage(replica_, std::nullopt, frame));
  EXPECT_EQ(frame.reads.at(0).read_codec, kReadDeltas);
  EXPECT_EQ(frame.pushes.at(0).read_codec, kReadPublished);
}

TEST_F(SendQueueTest, AReadOfSeveralEntriesEndsWithTheLast) {
  queue_.Read(ShardId{2}, Step{7});
  EXPECT_TRUE(queue_.AwaitsParameters(ShardId{2}, Step{7}));
  EXPECT_TRUE(queue_.AwaitsParameters(ShardId{2}, Step{7}));
  EXPECT_FALSE(queue_.AwaitsParameters(ShardId{2}, Step{8}));
  EXPECT_FALSE(queue_.AwaitsParameters(ShardId{9}, Step{7}));
  EXPECT_TRUE(Finish(2, 7));
  EXPECT_FALSE(queue_.AwaitsParameters(ShardId{2}, Step{7}));
}

TEST_F(SendQueueTest, AMessageEndsBeforeItExceedsItsLimit) {
  queue_.Push(PushOf(0, 7, kMessageBytes - 10));
  queue_.Push(PushOf(2, 7, 20));
  queue_.Push(PushOf(4, 7, kMessageBytes + 1));
  queue_.Push(PushOf(6, 7));
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_EQ(Next().pushes.at(0).payload.size(), kMessageBytes + 1)
      << "the largest payload is sent alone";
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_FALSE(queue_.has_unsent());
}

TEST_F(SendQueueTest, AfterALossUnjudgedPushesAreSentAgainWithTheSameBytes) {
  queue_.Push(PushOf(2, 7));
  queue_.Push(PushOf(4, 7));
  const WorkerFrame first = Next();
  ASSERT_TRUE(queue_.FinishPush(ShardId{4}, Step{7}).has_value());
  queue_.ResendUnanswered();
  const WorkerFrame again = Next();
  ASSERT_EQ(again.pushes.size(), 1u);
  EXPECT_EQ(again.pushes[0], first.pushes[0]);
  EXPECT_EQ(again.pushes[0].payload.pieces()[0].bytes.data(),
            first.pushes[0].payload.pieces()[0].bytes.data())
      << "shared, not copied";
  ASSERT_EQ(again.reads.size(), 1u) << "judged, but its parameters have not arrived";
  EXPECT_EQ(again.reads[0], (ReadEntry{.shard = ShardId{4},
                                       .step = Step{8},
                                       .read_codec = static_cast<uint32_t>(kCodec)}));
}

TEST_F(SendQueueTest, ASeedIsSentOncePerConnectionAndWithoutItsRead) {
  queue_.Read(ShardId{2}, Step{0});
  EXPECT_EQ(Next().reads.size(), 1u);
  queue_.Seed(ShardId{2});
  queue_.Seed(ShardId{2});
  EXPECT_TRUE(queue_.has_unsent());
  const WorkerFrame seed = Next();
  ASSERT_EQ(seed.seeds.size(), 1u);
  EXPECT_EQ(seed.seeds[0].shard, ShardId{2});
  EXPECT_EQ(seed.seeds[0].payload, replica_.SeedPayload(ShardId{2}));
  EXPECT_TRUE(seed.reads.empty());
  queue_.Seed(ShardId{2});
  EXPECT_FALSE(queue_.has_unsent());

  // After a loss the server decides again which worker sends the values.
  queue_.ResendUnanswered();
  const WorkerFrame again = Next();
  EXPECT_TRUE(again.seeds.empty());
  EXPECT_EQ(again.reads.size(), 1u);
  queue_.Seed(ShardId{2});
  ASSERT_TRUE(Finish(2, 0));
  Next();
  EXPECT_FALSE(any_) << "another worker has sent the values";
  queue_.Seed(ShardId{2});
  EXPECT_FALSE(queue_.has_unsent());
}

TEST_F(SendQueueTest, UnsentBytesCountUnsentPushes) {
  queue_.Push(PushOf(2, 7, 100));
  queue_.Read(ShardId{6}, Step{7});
  queue_.Push(PushOf(6, 7, 20));
  EXPECT_EQ(queue_.unsent_bytes(), 120u);
  Next();
  EXPECT_EQ(queue_.unsent_bytes(), 0u);
  queue_.ResendUnanswered();
  EXPECT_EQ(queue_.unsent_bytes(), 120u);
  ASSERT_TRUE(queue_.FinishPush(ShardId{2}, Step{7}).has_value());
  queue_.ResendUnanswered();
  EXPECT_EQ(queue_.unsent_bytes(), 20u);
}

TEST_F(SendQueueTest, APushFinishesOnceAndOnlyForItsStep) {
  queue_.Push(PushOf(2, 7));
  EXPECT_FALSE(queue_.FinishPush(ShardId{2}, Step{6}).has_value());
  EXPECT_FALSE(queue_.FinishPush(ShardId{4}, Step{7}).has_value());
  EXPECT_FALSE(queue_.FinishPush(ShardId{3}, Step{7}).has_value()) << "another server's shard";
  EXPECT_FALSE(queue_.FinishPush(ShardId{999}, Step{7}).has_value());
  EXPECT_EQ(queue_.unjudged(), Shards({2}));
  EXPECT_EQ(queue_.Awaited(), "waited for the verdicts of step 7 (shard 2)");
  EXPECT_EQ(queue_.FinishPush(ShardId{2}, Step{7})->step, Step{7});
  EXPECT_FALSE(queue_.FinishPush(ShardId{2}, Step{7}).has_value());
  EXPECT_TRUE(queue_.unjudged().empty());
}

TEST_F(SendQueueTest, AReadFinishesOnceAndAfterTheReadsForEarlierSteps) {
  queue_.Read(ShardId{2}, Step{3});
  queue_.Read(ShardId{2}, Step{9});
  EXPECT_EQ(Next().reads.size(), 1u);
  EXPECT_TRUE(Finish(2, 3)) << "the answer to an earlier read was on its way";
  EXPECT_FALSE(Finish(2, 3));
  EXPECT_FALSE(Finish(5, 9));
  EXPECT_TRUE(queue_.HasPendingRead(ShardId{2}));
  EXPECT_EQ(queue_.unanswered(), Shards({2}));
  EXPECT_EQ(queue_.Awaited(), "waited for the parameters of step 9 (shard 2)");
  EXPECT_TRUE(Finish(2, 9));
  EXPECT_FALSE(Finish(2, 9));
  EXPECT_FALSE(queue_.HasPendingRead(ShardId{2}));
}

TEST_F(SendQueueTest, AnEntryThatIsAnsweredWhileQueuedIsNotSent) {
  queue_.Read(ShardId{2}, Step{3});
  ASSERT_TRUE(Finish(2, 3));
  Next();
  EXPECT_FALSE(any_);
}

TEST_F(SendQueueTest, AKeptBackPushIsSentAfterTheParametersOfItsStep) {
  queue_.Push(PushOf(2, 7));
  Next();
  queue_.ResendUnanswered();
  queue_.ReadBeforePush(ShardId{2}, Step{5});
  const WorkerFrame reads = Next();
  EXPECT_TRUE(reads.pushes.empty());
  ASSERT_EQ(reads.reads.size(), 1u);
  EXPECT_EQ(reads.reads[0].step, Step{7});
  EXPECT_FALSE(queue_.AwaitsParameters(ShardId{2}, Step{8}));
  EXPECT_FALSE(Finish(2, 8));
  ASSERT_TRUE(Finish(2, 7));
  EXPECT_TRUE(queue_.HasPendingRead(ShardId{2})) << "the push is a read, too";
  const WorkerFrame pushes = Next();
  ASSERT_EQ(pushes.pushes.size(), 1u);
  EXPECT_EQ(pushes.pushes[0].step, Step{7});
  EXPECT_TRUE(queue_.FinishPush(ShardId{2}, Step{7}).has_value());
  EXPECT_TRUE(Finish(2, 8));
  EXPECT_FALSE(queue_.HasPendingRead(ShardId{2}));
}

TEST_F(SendQueueTest, APushThatTheRestoredServerHasJudgedIsSentAtOnce) {
  queue_.Push(PushOf(2, 7));
  Next();
  queue_.ResendUnanswered();
  queue_.ReadBeforePush(ShardId{2}, Step{8});
  const WorkerFrame frame = Next();
  EXPECT_TRUE(frame.reads.empty());
  EXPECT_EQ(frame.pushes.size(), 1u);
}

// Without this read, a server that has forgotten the worker's steps lets other workers wait for it.
TEST_F(SendQueueTest, AWorkerThatComputesTellsItsStepToAServerThatCameBackWithAnEarlierState) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  EXPECT_FALSE(queue_.HasParameters(ShardId{2}, Step{7}));
  ASSERT_TRUE(Finish(2, 7));
  queue_.ResendUnanswered();
  queue_.ReadBeforePush(ShardId{2}, Step{5});
  const WorkerFrame reads = Next();
  ASSERT_EQ(reads.reads.size(), 1u);
  EXPECT_EQ(reads.reads[0].step, Step{7});
  EXPECT_TRUE(queue_.HasParameters(ShardId{2}, Step{7})) << "the answer must change nothing";
  queue_.Push(PushOf(2, 7));
  EXPECT_FALSE(queue_.has_unsent()) << "the read is unanswered";
  ASSERT_TRUE(Finish(2, 7));
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_TRUE(Finish(2, 8));
}

TEST_F(SendQueueTest, AWorkerWhoseStepTheServerKnowsReadsNothing) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  ASSERT_TRUE(Finish(2, 7));
  queue_.ReadBeforePush(ShardId{2}, Step{8});
  EXPECT_FALSE(queue_.has_unsent());
}

TEST_F(SendQueueTest, AReadIsNotRepeatedAfterTheServerCameBackWithAnEarlierState) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  queue_.ResendUnanswered();
  queue_.ReadBeforePush(ShardId{2}, Step{5});
  EXPECT_EQ(Next().reads.size(), 1u);
  ASSERT_TRUE(Finish(2, 7));
  EXPECT_FALSE(queue_.HasPendingRead(ShardId{2}));
  queue_.Push(PushOf(2, 7));
  EXPECT_EQ(Next().pushes.size(), 1u) << "the parameters of step 7 have arrived";
}

TEST_F(SendQueueTest, AShardHasThePushesOfSeveralSteps) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  ASSERT_TRUE(Finish(2, 7, 9));
  queue_.Push(PushOf(2, 7, 100));
  EXPECT_TRUE(queue_.HasUnsentBefore(Step{8}));
  EXPECT_FALSE(queue_.HasUnsentBefore(Step{7}));
  EXPECT_EQ(Next().pushes.size(), 1u);
  queue_.Push(PushOf(2, 8, 20));
  queue_.Push(PushOf(2, 9, 3));
  EXPECT_EQ(queue_.unsent_bytes(), 23u);
  const WorkerFrame frame = Next();
  ASSERT_EQ(frame.pushes.size(), 2u) << "in ascending order";
  EXPECT_EQ(frame.pushes[0].step, Step{8});
  EXPECT_EQ(frame.pushes[1].step, Step{9});

  // Verdicts and answers arrive in any combination.
  EXPECT_TRUE(queue_.FinishPush(ShardId{2}, Step{7}).has_value());
  EXPECT_TRUE(Finish(2, 8, 10));
  EXPECT_FALSE(Finish(2, 8, 10));
  queue_.ResendUnanswered();
  EXPECT_EQ(queue_.unsent_bytes(), 23u);
  EXPECT_EQ(queue_.Awaited(), "waited for the verdicts of step 8 (shard 2)");
  const WorkerFrame again = Next();
  ASSERT_EQ(again.pushes.size(), 2u);
  EXPECT_TRUE(again.reads.empty());
  EXPECT_TRUE(Finish(2, 10)) << "the answers to the reads for 9 and 10 are one";
  EXPECT_FALSE(Finish(2, 9));
  EXPECT_FALSE(queue_.HasPendingRead(ShardId{2}));
  EXPECT_EQ(queue_.unjudged_pushes(ShardId{2}).size(), 2u);
}

TEST_F(SendQueueTest, APushAfterTheLastOneThatMayBePushedWaitsForAnAnswer) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  ASSERT_TRUE(Finish(2, 7, 7));
  queue_.Push(PushOf(2, 7));
  queue_.Push(PushOf(2, 8));
  EXPECT_EQ(Next().pushes.size(), 1u);
  EXPECT_FALSE(queue_.has_unsent()) << "the push of step 7 is the read for step 8";
  queue_.ResendUnanswered();
  const WorkerFrame again = Next();
  EXPECT_EQ(again.pushes.size(), 1u);
  EXPECT_TRUE(again.reads.empty());
  ASSERT_TRUE(Finish(2, 8, 8));
  const WorkerFrame held = Next();
  ASSERT_EQ(held.pushes.size(), 1u);
  EXPECT_EQ(held.pushes[0].step, Step{8});
}

TEST_F(SendQueueTest, SeveralPushesFollowAServerThatCameBackWithAnEarlierState) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  ASSERT_TRUE(Finish(2, 7, 9));
  for (const uint64_t step : {7, 8, 9}) queue_.Push(PushOf(2, step));
  Next();
  ASSERT_TRUE(Finish(2, 8, 10));
  queue_.ResendUnanswered();
  queue_.ReadBeforePush(ShardId{2}, Step{0});
  const WorkerFrame read = Next();
  EXPECT_TRUE(read.pushes.empty());
  ASSERT_EQ(read.reads.size(), 1u);
  EXPECT_EQ(read.reads[0].step, Step{7});
  EXPECT_TRUE(queue_.HasParameters(ShardId{2}, Step{7})) << "the replica has newer parameters";
  ASSERT_TRUE(queue_.FinishRead(ShardId{2}, Step{7}, Step{8}));
  EXPECT_EQ(Next().pushes.size(), 2u);
  ASSERT_TRUE(queue_.FinishRead(ShardId{2}, Step{8}, Step{8}));
  EXPECT_FALSE(queue_.has_unsent());
  ASSERT_TRUE(queue_.FinishRead(ShardId{2}, Step{9}, Step{9}));
  EXPECT_EQ(Next().pushes.at(0).step, Step{9});
}

TEST_F(SendQueueTest, AReadAgainAsksForTheNewestReadThatWasSent) {
  queue_.Read(ShardId{2}, Step{7});
  Next();
  ASSERT_TRUE(Finish(2, 7, 9));
  queue_.Push(PushOf(2, 7));
  Next();
  queue_.Push(PushOf(2, 8));
  queue_.ReadAgain(ShardId{2});
  const WorkerFrame frame = Next();
  EXPECT_EQ(frame.pushes.size(), 1u) << "the push is the read for step 9";
  EXPECT_TRUE(frame.reads.empty());
  queue_.ReadAgain(ShardId{2});
  EXPECT_EQ(Next().reads.at(0).step, Step{9});
  ASSERT_TRUE(Finish(2, 9));
  queue_.ReadAgain(ShardId{2});
  queue_.ResendUnanswered();
  const WorkerFrame again = Next();
  ASSERT_EQ(again.pushes.size(), 2u);
  EXPECT_TRUE(again.reads.empty());
  EXPECT_TRUE(queue_.FinishPush(ShardId{2}, Step{7}).has_value());
  EXPECT_TRUE(queue_.FinishPush(ShardId{2}, Step{8}).has_value());
  queue_.ResendUnanswered();
  EXPECT_EQ(Next().reads.at(0).step, Step{9}) << "the answer was lost";
}

}  // namespace
}  // namespace thinwire::client
