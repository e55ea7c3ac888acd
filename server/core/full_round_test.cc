// Tests rounds that wait for sums of squares over all shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/shard.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

// The averaged gradient has the norm NORM over all shards.
SumEvent SumOf(uint64_t step, double norm) { return {Step{step}, {.update = norm * norm}}; }

class FullRoundTest : public testing::Test {
 protected:
  // Opens a shard of VALUE_COUNT zeros for two workers.
  void Open(const Rule& rule = Rule::Sync(2), size_t value_count = 1) {
    ShardOptions options;
    options.value_count = value_count;
    options.rule = rule;
    options.clip_norm = 1;
    shard_ = std::make_unique<Shard>(options, optimizer_, schedule_);
    shard_->Apply(SeedEvent{Fp32Payload(std::vector<float>(value_count))});
    for (const FakeWorker& worker : {a_, b_}) {
      shard_->Apply(worker.Join());
      shard_->Apply(worker.Read(0));
    }
    ASSERT_TRUE(shard_->open());
  }

  const FakeWorker a_{WorkerId{0}}, b_{WorkerId{1}};
  const PlainDescent optimizer_;
  const Schedule schedule_ = ConstantRate();
  std::unique_ptr<Shard> shard_;
};

TEST_F(FullRoundTest, AFullRoundWaitsForItsSums) {
  Open();
  EXPECT_EQ(shard_->Apply(a_.Push(0, 1, {4})).full_round, std::nullopt);
  const Effects full = shard_->Apply(b_.Push(0, 3, {8}));
  EXPECT_EQ(full.full_round, (FullRound{Step{0}, {.update = 49}}));
  EXPECT_TRUE(full.rounds.empty());
  EXPECT_TRUE(full.answers.empty());
  EXPECT_TRUE(shard_->full());
  EXPECT_FALSE(shard_->CanSave());
  EXPECT_EQ(shard_->version(), Version{0});

  const Effects closed = shard_->Apply(SumOf(0, 2));
  EXPECT_EQ(closed.rounds, (std::vector<ClosedRound>{{Step{0}, {WorkerId{0}, WorkerId{1}}}}));
  EXPECT_EQ(closed.answers.size(), 2u);
  EXPECT_EQ(closed.full_round, std::nullopt);
  EXPECT_FALSE(shard_->full());
  EXPECT_TRUE(shard_->CanSave());
  EXPECT_EQ(shard_->frontier(), Step{1});
  EXPECT_EQ(shard_->masters()[0], -3.5f);
}

TEST_F(FullRoundTest, ASumOfAnotherStepIsIgnored) {
  Open();
  shard_->Apply(SumOf(0, 2));
  shard_->Apply(a_.Push(0, 1, {4}));
  shard_->Apply(b_.Push(0, 1, {4}));
  EXPECT_EQ(shard_->Apply(SumOf(1, 4)), Effects());
  EXPECT_TRUE(shard_->full());
  shard_->Apply(SumOf(0, 1));
  EXPECT_EQ(shard_->masters()[0], -4);
  EXPECT_EQ(shard_->Apply(SumOf(0, 2)), Effects()) << "a repeated sum";
  EXPECT_EQ(shard_->masters()[0], -4);
}

TEST_F(FullRoundTest, ARoundWithoutGradientsNeedsNoSum) {
  Open();
  shard_->Apply(a_.PushNothing(0));
  const Effects closed = shard_->Apply(b_.PushNothing(0));
  EXPECT_EQ(closed.rounds, (std::vector<ClosedRound>{{Step{0}, {}}}));
  EXPECT_EQ(closed.answers.size(), 2u);
  EXPECT_FALSE(shard_->full());
}

TEST_F(FullRoundTest, AFullRoundAcceptsNoPush) {
  Open();
  shard_->Apply(b_.Expire());
  EXPECT_TRUE(shard_->Apply(a_.Push(0, 1, {4})).full_round.has_value());
  const Judgement late = *shard_->Apply(b_.Push(0, 1, {8})).judgement;
  EXPECT_EQ(late.verdict, Verdict::kLate);
  EXPECT_EQ(late.frontier, Step{1}) << "the worker continues with this step";
  EXPECT_EQ(shard_->Apply(a_.Push(1, 1, {8})).judgement->verdict, Verdict::kEarly);
  const Effects closed = shard_->Apply(SumOf(0, 1));
  EXPECT_EQ(closed.rounds, (std::vector<ClosedRound>{{Step{0}, {WorkerId{0}}}}));
  EXPECT_EQ(shard_->masters()[0], -4);
}

TEST_F(FullRoundTest, AWaitingReadNamesNoWorkerWhileARoundIsFull) {
  Open();
  shard_->Apply(b_.Expire());
  shard_->Apply(a_.Push(0, 1, {4}));
  shard_->Apply(b_.Return());
  ASSERT_EQ(shard_->BlockedReads().size(), 1u);
  EXPECT_TRUE(shard_->BlockedReads()[0].unfinished.empty());
}

// The rounds that a departed worker has finished close, although a worker returns before the
// sum arrives.
TEST_F(FullRoundTest, RoundsOfDepartedWorkersCloseAfterTheSum) {
  Open();
  shard_->Apply(a_.Push(0, 1, {4}));
  shard_->Apply(a_.Read(3));
  EXPECT_TRUE(shard_->Apply(b_.Leave()).full_round.has_value());
  shard_->Apply(a_.Leave());
  EXPECT_EQ(shard_->Apply(FakeWorker{WorkerId{1}, Incarnation{2}}.Join()).join->frontier, Step{3});
  const Effects closed = shard_->Apply(SumOf(0, 1));
  EXPECT_EQ(closed.rounds, (std::vector<ClosedRound>{{Step{0}, {WorkerId{0}}}, {Step{2}, {}}}));
  EXPECT_EQ(shard_->frontier(), Step{3});
}

// The bits of the norm decide those of the update.
TEST_F(FullRoundTest, TheNormDoesNotDependOnTheOrderOfArrival) {
  constexpr size_t kValues = 2 * kDecodedBlock + 777;
  const std::vector<float> values = Gauss(kValues, 7);
  PushEvent push = a_.PushNothing(0);
  push.examples = 3;
  push.payload = Fp32Payload(values);
  const auto norm_of = [&](const Event& first, const Event& second) {
    Open(Rule::Sync(2, /*ordered_fold=*/true), kValues);
    shard_->Apply(first);
    return std::bit_cast<uint64_t>(shard_->Apply(second).full_round->sums.update);
  };
  EXPECT_EQ(norm_of(push, b_.PushNothing(0)), norm_of(b_.PushNothing(0), push));
}

// Returns the masters after steps of two workers, as bits. CLIPS: with factor 1.
std::vector<uint32_t> TrainedBits(bool clips, const Optimizer& optimizer, const CodecSpec& codec) {
  constexpr size_t kValues = 1000;
  const Schedule schedule = Schedule::Make({.learning_rate = 0.01}).value();
  const auto encoder = MakeCodec(codec).value();
  ShardOptions options;
  options.value_count = kValues;
  options.rule = Rule::Sync(2);
  options.sparse_updates.lazy_slots = !optimizer.reads_norms();
  options.clip_norm = clips ? 1 : 0;
  Shard shard(options, optimizer, schedule);
  shard.Apply(SeedEvent{Fp32Payload(Gauss(kValues, 1))});
  const std::vector<FakeWorker> workers = {{WorkerId{0}}, {WorkerId{1}}};
  for (const FakeWorker& worker : workers) {
    shard.Apply(worker.Join());
    shard.Apply(worker.Read(0));
  }
  for (uint32_t step = 0; step < 4; ++step) {
    for (const FakeWorker& worker : workers) {
      PushEvent push = worker.PushNothing(step);
      push.examples = 3 + worker.worker.value;
      const std::vector<float> values = Gauss(kValues, 10 * step + worker.worker.value);
      push.payload = CheckPayload(ByteChain(Encoded(*encoder, values)), kValues).value();
      shard.Apply(push);
    }
    EXPECT_EQ(shard.full(), clips);
    shard.Apply(SumOf(step, 1));
  }
  EXPECT_EQ(shard.version(), Version{4});
  std::vector<uint32_t> bits(kValues);
  std::ranges::transform(shard.masters(), bits.begin(),
                         [](float master) { return std::bit_cast<uint32_t>(master); });
  return bits;
}

TEST_F(FullRoundTest, FactorOneKeepsEveryBit) {
  const CodecSpec codecs[] = {{.id = CodecId::kFp32}, {.id = CodecId::kTopK, .density = 0.1}};
  for (size_t kind = 0; kind < std::size(kOptimizers); ++kind) {
    const auto optimizer = MakeOptimizer({.kind = static_cast<OptimizerKind>(kind)}).value();
    for (const CodecSpec& codec : codecs) {
      EXPECT_EQ(TrainedBits(true, *optimizer, codec), TrainedBits(false, *optimizer, codec))
          << kOptimizers[kind].name;
    }
  }
}

// Shards of one tensor, for one worker. Each has the values of a tensor from the end of the shard
// before on.
class SharedTensorTest : public testing::TestWithParam<OptimizerKind> {
 protected:
  static constexpr size_t kValues = 5000;
  const FakeWorker worker_{WorkerId{0}};
  const std::unique_ptr<const Optimizer> optimizer_ =
      MakeOptimizer({.kind = GetParam(), .weight_decay = 0.01}).value();
  const Schedule schedule_ = Schedule::Make({.learning_rate = 0.1}).value();

  // Returns the masters after five steps of a tensor in shards of COUNTS values.
  std::vector<float> Train(const std::vector<size_t>& counts) {
    const std::vector<float> initial = Gauss(kValues, 1);
    std::vector<std::unique_ptr<Shard>> shards;
    size_t first = 0;
    for (const size_t count : counts) {
      ShardOptions options;
      options.value_count = count;
      options.rule = Rule::Sync(1);
      options.shares_tensor = counts.size() > 1;
      Shard& shard = *shards.emplace_back(std::make_unique<Shard>(options, *optimizer_, schedule_));
      shard.Apply(SeedEvent{Fp32Payload(std::span(initial).subspan(first, count))});
      shard.Apply(worker_.Join());
      shard.Apply(worker_.Read(0));
      first += count;
    }
    for (uint64_t step = 0; step < 5; ++step) Step(step, shards);
    std::vector<float> masters;
    for (const auto& shard : shards) {
      EXPECT_EQ(shard->version(), Version{5});
      masters.insert(masters.end(), shard->masters().begin(), shard->masters().end());
    }
    return masters;
  }

 private:
  void Step(uint64_t step, std::span<const std::unique_ptr<Shard>> shards) {
    const std::vector<float> gradient = Gauss(kValues, 10 + static_cast<uint32_t>(step));
    SquareSums sums;
    size_t first = 0;
    for (const auto& shard : shards) {
      PushEvent push = worker_.PushNothing(step);
      push.examples = 3;
      const size_t count = shard->masters().size();
      push.payload = Fp32Payload(std::span(gradient).subspan(first, count));
      first += count;
      const Effects effects = shard->Apply(push);
      EXPECT_EQ(shard->full(), shards.size() > 1);
      EXPECT_EQ(shard->CanSave(), !shard->full());
      if (effects.full_round.has_value()) sums += effects.full_round->sums;
    }
    for (const auto& shard : shards) {
      shard->Apply(SumEvent{thinwire::Step{step}, sums});
      EXPECT_FALSE(shard->full());
    }
  }
};

TEST_P(SharedTensorTest, ShardsTogetherEqualOneShard) {
  const std::vector<float> whole = Train({kValues});
  const std::vector<float> shared = Train({2048, 2777, 175});
  ASSERT_EQ(shared.size(), whole.size());
  EXPECT_NE(whole, Gauss(kValues, 1));
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(shared[i], whole[i], 1e-6 * (1 + std::abs(whole[i]))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(TrustRatios, SharedTensorTest,
                         testing::Values(OptimizerKind::kLars, OptimizerKind::kLamb));

}  // namespace
}  // namespace thinwire
