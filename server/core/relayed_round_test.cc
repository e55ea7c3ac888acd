// Tests shards whose updates another job makes.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/codec/codec.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

class RelayedRoundTest : public testing::Test {
 protected:
  std::unique_ptr<Shard> MakeShard(Step relayed_until = {}) const {
    ShardOptions options;
    options.value_count = 2;
    options.rule = Rule::Sync(2);
    options.relayed = true;
    options.relayed_until = relayed_until;
    return std::make_unique<Shard>(options, optimizer_, schedule_);
  }
  // The workers of SHARD have joined and read STEP.
  void Begin(Shard& shard, uint64_t step = 0) const {
    for (const FakeWorker& worker : {a_, b_}) {
      shard.Apply(worker.Join());
      shard.Apply(worker.Read(step));
    }
  }
  static UpdateEvent UpdateOf(uint64_t step, const std::vector<float>& values) {
    return {Step{step}, Fp32Payload(values)};
  }
  // An open shard with the values 5 and 6.
  void Open() {
    shard_->Apply(SeedEvent{Fp32Payload({1, 2})});
    Begin(*shard_);
    shard_->Apply(UpdateOf(0, {5, 6}));
    ASSERT_TRUE(shard_->open());
  }

  const FakeWorker a_{WorkerId{0}}, b_{WorkerId{1}};
  const PlainDescent optimizer_;
  const Schedule schedule_ = ConstantRate();
  const std::unique_ptr<Shard> shard_ = MakeShard();
};

TEST_F(RelayedRoundTest, TheShardOpensWithTheFirstUpdate) {
  shard_->Apply(SeedEvent{Fp32Payload({1, 2})});
  shard_->Apply(a_.Join());
  EXPECT_EQ(shard_->Apply(a_.Read(0)).full_round, std::nullopt);
  shard_->Apply(b_.Join());
  const Effects full = shard_->Apply(b_.Read(0));
  EXPECT_EQ(full.full_round, (FullRound{Step{0}, {}}));
  EXPECT_TRUE(full.answers.empty());
  EXPECT_FALSE(shard_->open());
  EXPECT_EQ(shard_->Apply(a_.Read(0)).full_round, std::nullopt) << "reported once";
  std::vector<float> values(2);
  EXPECT_TRUE(shard_->CopyRelayed(values).first);
  EXPECT_EQ(values, (std::vector<float>{1, 2}));

  const Effects opened = shard_->Apply(UpdateOf(0, {5, 6}));
  EXPECT_TRUE(opened.opened);
  EXPECT_EQ(opened.answers.size(), 2u);
  EXPECT_TRUE(opened.rounds.empty());
  EXPECT_EQ(shard_->frontier(), Step{0});
  EXPECT_EQ(shard_->masters()[0], 5);
}

TEST_F(RelayedRoundTest, AFullRoundHasTheMeanAndTakesTheUpdate) {
  Open();
  shard_->Apply(a_.Push(0, 1, {4, 8}));
  const Effects full = shard_->Apply(b_.Push(0, 3, {8, 0}));
  EXPECT_EQ(full.full_round, (FullRound{Step{0}, {}}));
  EXPECT_TRUE(full.answers.empty());
  std::vector<float> values(2);
  const RelayedPart part = shard_->CopyRelayed(values);
  EXPECT_FALSE(part.first);
  EXPECT_EQ(part.weight, 4u);
  EXPECT_EQ(part.rate_factor, 1);
  EXPECT_EQ(values, (std::vector<float>{7, 2}));
  EXPECT_EQ(shard_->masters()[0], 5) << "the shard makes no update";

  EXPECT_EQ(shard_->Apply(UpdateOf(1, {0, 0})), Effects()) << "of another step";
  const Effects closed = shard_->Apply(UpdateOf(0, {-1, -2}));
  EXPECT_EQ(closed.rounds, (std::vector<ClosedRound>{{Step{0}, {WorkerId{0}, WorkerId{1}}}}));
  EXPECT_EQ(closed.answers.size(), 2u);
  EXPECT_EQ(shard_->masters()[1], -2);
  EXPECT_EQ(shard_->frontier(), Step{1});
  EXPECT_TRUE(shard_->CanSave());
  EXPECT_EQ(shard_->Apply(UpdateOf(0, {3, 3})), Effects()) << "a repeated update";
}

TEST_F(RelayedRoundTest, ARoundWithoutGradientsIsFullToo) {
  Open();
  shard_->Apply(a_.PushNothing(0));
  EXPECT_EQ(shard_->Apply(b_.PushNothing(0)).full_round, (FullRound{Step{0}, {}}));
  std::vector<float> values(2, 9);
  EXPECT_EQ(shard_->CopyRelayed(values).weight, 0u);
  EXPECT_EQ(values, (std::vector<float>{0, 0}));
  const Effects closed = shard_->Apply(UpdateOf(0, {7, 7}));
  EXPECT_EQ(closed.rounds, (std::vector<ClosedRound>{{Step{0}, {}}}));
  EXPECT_EQ(shard_->masters()[0], 7);
}

TEST_F(RelayedRoundTest, TheLastDepartureFillsTheRound) {
  Open();
  shard_->Apply(a_.Push(0, 1, {4, 4}));
  EXPECT_EQ(shard_->Apply(b_.Leave()).full_round, (FullRound{Step{0}, {}}));
  EXPECT_EQ(shard_->Apply(a_.Leave()).full_round, std::nullopt);
  shard_->Apply(UpdateOf(0, {7, 7}));
  EXPECT_EQ(shard_->frontier(), Step{1});
  EXPECT_FALSE(shard_->full());
}

TEST_F(RelayedRoundTest, ARestoredShardWaitsForItsValuesAtTheRelayedStep) {
  Open();
  shard_->Apply(a_.Push(0, 1, {4, 4}));
  shard_->Apply(b_.Push(0, 1, {4, 4}));
  shard_->Apply(UpdateOf(0, {7, 7}));
  const ShardSnapshot snapshot = shard_->Save();
  for (const uint64_t relayed : {0u, 5u}) {
    const std::unique_ptr<Shard> restored = MakeShard(Step{relayed});
    ASSERT_TRUE(restored->Restore(snapshot).ok());
    EXPECT_FALSE(restored->open());
    const uint64_t step = relayed == 0 ? 1 : relayed;
    EXPECT_EQ(restored->frontier(), Step{step});
    const Effects full = restored->Apply(a_.Read(step));
    EXPECT_EQ(full.full_round, (FullRound{Step{step}, {}}));
    restored->Apply(b_.Read(step));
    const Effects opened = restored->Apply(UpdateOf(step, {8, 8}));
    EXPECT_EQ(opened.answers.size(), 2u);
    EXPECT_EQ(restored->masters()[0], 8);
  }
}

}  // namespace
}  // namespace thinwire
