#include "client/encode/push_encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/spec/place_tensors.h"

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

constexpr ShardId kShard{0};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Floats Decode(const PushEntry& push, size_t count) {
  Floats values(count);
  DecodePayload(CheckPayload(push.payload, count).value(), values);
  return values;
}

// Encodes GRADIENT and completes PUSH with the result. Returns true if the gradient is finite.
bool Encode(PushEncoder& encoder, std::span<const float> gradient, PushEntry& push,
            const std::shared_ptr<const void>& owner = nullptr, float factor = 1) {
  const Segment whole = {.tensor = 0, .offset = 0, .count = gradient.size()};
  const ShardGradient shard = {{&whole, 1}, {&gradient, 1}, owner};
  EXPECT_TRUE(encoder.may_begin());
  EXPECT_TRUE(encoder.Begin(push, shard, factor).ok());
  EXPECT_TRUE(encoder.may_finish());
  PushEncoder::Encoded encoded = *encoder.Finish();
  push = std::move(encoded.push);
  return encoded.finite;
}

Floats ResidualOf(const PushEncoder& encoder) {
  const std::span<const float> residual = (*encoder.residuals())[kShard.value].residual;
  return {residual.begin(), residual.end()};
}

Floats MomentumOf(const PushEncoder& encoder) {
  const std::span<const float> momentum = (*encoder.residuals())[kShard.value].momentum;
  return {momentum.begin(), momentum.end()};
}

Floats Gauss(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(PushEncoderTest, AGradientThatIsNotFiniteDoesNotChangeTheResidual) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {.push = {.id = CodecId::kFp8E5m2}});
  PushEntry push{.shard = kShard, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, Floats{1.1f, 2.2f, 3.3f, 4.4f}, push));
  EXPECT_FALSE(push.payload.empty());
  const Floats before = ResidualOf(*encoder);
  ASSERT_EQ(before.size(), 4u);
  PushEntry bad{.shard = kShard, .examples = 8};
  EXPECT_FALSE(Encode(*encoder, Floats{1, kNan, 3, 4}, bad));
  EXPECT_EQ(bad.examples, 0u);
  EXPECT_TRUE(bad.payload.empty());
  EXPECT_EQ(ResidualOf(*encoder), before);
}

TEST(PushEncoderTest, AShardUsesItsOwnCodecAndTheResidualRemains) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {.push = {.id = CodecId::kFp8E5m2}});
  PushEntry first{.shard = kShard, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, Floats{1.1f, 2.2f, 3.3f, 4.4f}, first));
  const Floats residual = ResidualOf(*encoder);
  ASSERT_TRUE(encoder->UseCodecs({CodecSpec{.id = CodecId::kFp32}}).ok());
  PushEntry second{.shard = kShard, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, Floats{0, 0, 0, 0}, second));
  EXPECT_EQ(Decode(second, 4), residual);
  ASSERT_TRUE(encoder->UseCodecs({std::nullopt}).ok());
  PushEntry third{.shard = kShard, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, Floats{1, 1, 1, 1}, third));
  EXPECT_EQ(CheckPayload(third.payload, 4)->codec(), CodecId::kFp8E5m2);
  EXPECT_TRUE(
      absl::IsInvalidArgument(encoder->UseCodecs({CodecSpec{.id = CodecId::kTopK, .density = 2}})));
}

TEST(PushEncoderTest, ErrorsAreMeasuredWithTheResidual) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  // Sends 1 instead of each value above 1, and 0 instead of smaller ones.
  const CodecSpec twobit = {.id = CodecId::kTwoBit, .twobit_threshold = 1};
  for (const bool error_feedback : {true, false}) {
    const auto encoder =
        *PushEncoder::Make(partition, {.push = twobit, .error_feedback = error_feedback});
    PushEntry push{.shard = kShard, .examples = 8};
    ASSERT_TRUE(Encode(*encoder, Floats{9, 9, 9, 9}, push));
    EXPECT_EQ(encoder->error().values, 0) << "not measured yet";
    encoder->MeasureErrors(true);
    encoder->MeasureErrors(true);
    ASSERT_TRUE(Encode(*encoder, Floats{3, -2, 0, 0.5f}, push));
    if (error_feedback) {
      // Residual 8 each: encoded 11, 6, 8, 8.5; errors 10, 5, 7, 7.5.
      EXPECT_EQ(encoder->error().values, 121 + 36 + 64 + 72.25);
      EXPECT_EQ(encoder->error().errors, 100 + 25 + 49 + 56.25);
    } else {
      EXPECT_EQ(encoder->error().values, 9 + 4 + 0.25);
      EXPECT_EQ(encoder->error().errors, 4 + 1 + 0.25);
    }
    encoder->MeasureErrors(false);
    const double ratio = encoder->error().ratio();
    ASSERT_TRUE(Encode(*encoder, Floats{3, -2, 0, 0.5f}, push));
    EXPECT_EQ(encoder->error().ratio(), ratio);
    EXPECT_LT(ratio, 1);
  }
}

TEST(PushEncoderTest, LentValuesHaveNoError) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {});
  encoder->MeasureErrors(true);
  EXPECT_EQ(encoder->error().ratio(), 0);
  const auto gradient = std::make_shared<const Floats>(Floats{1, 2, 3, 4});
  PushEntry push{.shard = kShard, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, *gradient, push, gradient));
  EXPECT_EQ(encoder->error().values, 30);
  EXPECT_EQ(encoder->error().errors, 0);
}

TEST(PushEncoderTest, LateExamplesRemainUntilValuesAreAccepted) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {});
  const Floats gradient = {1, 2, 3, 4};
  const auto push = [&](uint32_t examples) {
    PushEntry entry{.shard = kShard, .examples = examples};
    Encode(*encoder, gradient, entry);
    return entry;
  };
  ASSERT_TRUE(encoder->Late(push(8)).ok());
  PushEntry second = push(5);
  EXPECT_EQ(second.late_examples, 8u);
  EXPECT_EQ(Decode(second, 4), (Floats{2, 4, 6, 8}));
  ASSERT_TRUE(encoder->Late(second).ok());
  EXPECT_EQ(push(0).late_examples, 0u);
  const PushEntry third = push(7);
  EXPECT_EQ(third.late_examples, 13u) << "a push of weight 0 carries no late examples";
  EXPECT_EQ(Decode(third, 4), (Floats{3, 6, 9, 12}));
  const PushEntry fourth = push(7);
  EXPECT_EQ(fourth.late_examples, 0u) << "the third push may be accepted";
  encoder->Refused(third);
  EXPECT_EQ(push(7).late_examples, 13u);
  EXPECT_EQ(Decode(push(7), 4), gradient);
}

TEST(PushEncoderTest, LatePushesOfSeveralStepsReturnInAnyOrder) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {});
  const auto push = [&](Floats gradient, uint32_t examples) {
    PushEntry entry{.shard = kShard, .examples = examples};
    Encode(*encoder, gradient, entry);
    return entry;
  };
  const PushEntry first = push({1, 0, 0, 0}, 1);
  const PushEntry second = push({0, 1, 0, 0}, 2);
  ASSERT_TRUE(encoder->Late(second).ok());
  const PushEntry third = push({0, 0, 1, 0}, 4);
  EXPECT_EQ(third.late_examples, 2u);
  ASSERT_TRUE(encoder->Late(first).ok());
  ASSERT_TRUE(encoder->Late(third).ok());
  const PushEntry fourth = push({0, 0, 0, 1}, 8);
  EXPECT_EQ(fourth.late_examples, 7u);
  EXPECT_EQ(Decode(fourth, 4), (Floats{1, 1, 1, 1}));
}

TEST(PushEncoderTest, ProducedGradientsAreAppliedOnesPlusTheResidual) {
  constexpr size_t kCount = 64;
  const Partition partition = *Partition::Make({{"w", {8, 8}}}, 4096, 1);
  for (const CodecId id : {CodecId::kFp8E5m2, CodecId::kFp8E4m3, CodecId::kTopK}) {
    const auto encoder = *PushEncoder::Make(partition, {.push = {.id = id, .density = 0.1}});
    std::mt19937 random(42);
    std::normal_distribution<float> normal;
    std::vector<double> produced(kCount), applied(kCount);
    for (int step = 0; step < 50; ++step) {
      Floats gradient(kCount);
      for (size_t i = 0; i < kCount; ++i) produced[i] += gradient[i] = normal(random);
      PushEntry push{.shard = kShard, .examples = 1};
      ASSERT_TRUE(Encode(*encoder, gradient, push));
      if (step % 7 == 3) {
        ASSERT_TRUE(encoder->Late(push).ok());
        continue;
      }
      const Floats values = Decode(push, kCount);
      for (size_t i = 0; i < kCount; ++i) applied[i] += values[i];
    }
    const Floats residual = ResidualOf(*encoder);
    ASSERT_EQ(residual.size(), kCount);
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_NEAR(produced[i], applied[i] + residual[i], 1e-4) << id << " " << i;
    }
  }
}

TEST(PushEncoderTest, IfMatricesUseASparseCodecVectorsUseADenseOne) {
  const Partition partition = *Partition::Make({{"w", {40, 50}}, {"b", {50}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(
      partition, {.push = {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp16}});
  PushEntry matrix{.shard = partition.ShardsOfTensor(0)[0], .examples = 1};
  ASSERT_TRUE(Encode(*encoder, Floats(2000, 1), matrix));
  EXPECT_EQ(PayloadCodec(CheckPayload(matrix.payload, 2000).value()), CodecId::kTopK);
  PushEntry vector{.shard = partition.ShardsOfTensor(1)[0], .examples = 1};
  ASSERT_TRUE(Encode(*encoder, Floats(50, 1), vector));
  EXPECT_EQ(PayloadCodec(CheckPayload(vector.payload, 50).value()), CodecId::kFp16);
}

TEST(PushEncoderTest, TheCodecOfAGroupReplacesTheJobsCodecs) {
  std::vector<TensorShape> tensors = {{"w", {40, 50}}, {"b", {50}}, {"v", {40, 50}}};
  const std::vector<GroupSpec> groups = {
      {},
      {.match = "b", .push = CodecSpec{.id = CodecId::kTopK, .density = 0.1}},
      {.match = "v", .push = CodecSpec{.id = CodecId::kBf16}}};
  ASSERT_EQ(PlaceTensors(groups, tensors), absl::OkStatus());
  const Partition partition = *Partition::Make(tensors, 4096, 1);
  const auto encoder =
      *PushEncoder::Make(partition, {.groups = groups, .push = {.id = CodecId::kFp8E5m2}});
  const CodecId expected[] = {CodecId::kFp8E5m2, CodecId::kTopK, CodecId::kBf16};
  for (uint32_t t = 0; t < 3; ++t) {
    const size_t count = partition.tensors()[t].value_count();
    PushEntry push{.shard = partition.ShardsOfTensor(t)[0], .examples = 1};
    ASSERT_TRUE(Encode(*encoder, Floats(count, 1), push));
    EXPECT_EQ(PayloadCodec(CheckPayload(push.payload, count).value()), expected[t]);
  }
}

TEST(PushEncoderTest, AnFp32PayloadRefersToAGradientThatHasAnOwner) {
  const Partition partition = *Partition::Make({{"w", {50, 80}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {.push = {.id = CodecId::kFp32}});
  const auto gradient = std::make_shared<std::vector<float>>(4000, 0.5f);
  PushEntry copied{.shard = ShardId{0}, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, *gradient, copied));
  PushEntry lent{.shard = ShardId{0}, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, *gradient, lent, gradient));
  EXPECT_EQ(lent.payload, copied.payload);
  EXPECT_EQ(lent.payload.pieces().back().bytes.data(),
            reinterpret_cast<const std::byte*>(gradient->data()));
  EXPECT_EQ(gradient.use_count(), 2);
  ASSERT_TRUE(encoder->Late(lent).ok());  // the residual is now not zero
  PushEntry next{.shard = ShardId{0}, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, *gradient, next, gradient));
  std::vector<float> sent(4000);
  DecodePayload(CheckPayload(next.payload, sent.size()).value(), sent);
  EXPECT_EQ(sent, std::vector<float>(4000, 1.0f));
}

// A reference implementation of algorithm 4 of Lin et al. 2018.
class PlainCorrection {
 public:
  PlainCorrection(const CorrectionOptions& options, size_t count)
      : options_(options), u_(count), produced_(count) {}

  void Take(const Floats& gradient) {
    for (size_t i = 0; i < u_.size(); ++i) {
      u_[i] = options_.momentum * u_[i] + gradient[i];
      produced_[i] += options_.nesterov ? gradient[i] + options_.momentum * u_[i] : u_[i];
    }
  }
  void Sent(const ByteChain& payload) {
    if (!options_.factor_masking) return;
    ForEachPayloadEntry(CheckPayload(payload, u_.size()).value(), [&](auto indices, auto) {
      for (const uint32_t index : indices) u_[index] = 0;
    });
  }
  const Floats& momentum() const { return u_; }
  const std::vector<double>& produced() const { return produced_; }

 private:
  const CorrectionOptions options_;
  Floats u_;
  std::vector<double> produced_;
};

// Every seventh push is late: the push's values return to the residual and do not change the
// momentum.
TEST(PushEncoderTest, WithMomentumCorrectionProducedIsAppliedPlusTheResidual) {
  constexpr size_t kCount = 64;
  const Partition partition = *Partition::Make({{"w", {8, 8}}}, 4096, 1);
  for (const bool nesterov : {false, true}) {
    for (const bool masking : {false, true}) {
      ClientOptions options;
      options.push = {.id = CodecId::kTopK, .density = 0.1, .values = CodecId::kFp8E5m2};
      options.correction = {.enabled = true, .nesterov = nesterov, .factor_masking = masking};
      const auto encoder = *PushEncoder::Make(partition, options);
      PlainCorrection plain(options.correction, kCount);
      std::vector<double> applied(kCount);
      for (uint32_t step = 0; step < 60; ++step) {
        const Floats gradient = Gauss(kCount, step);
        plain.Take(gradient);
        PushEntry push{.shard = kShard, .step = Step{step}, .examples = 1};
        ASSERT_TRUE(Encode(*encoder, gradient, push));
        plain.Sent(push.payload);
        if (step % 7 == 3) {
          ASSERT_TRUE(encoder->Late(push).ok());
        } else {
          const Floats values = Decode(push, kCount);
          for (size_t i = 0; i < kCount; ++i) applied[i] += values[i];
        }
        ASSERT_EQ(MomentumOf(*encoder), plain.momentum()) << "step " << step;
      }
      const Floats residual = ResidualOf(*encoder);
      for (size_t i = 0; i < kCount; ++i) {
        EXPECT_NEAR(plain.produced()[i], applied[i] + residual[i], 1e-3) << i;
      }
    }
  }
}

TEST(PushEncoderTest, AGradientThatIsNotFiniteDoesNotChangeTheMomentum) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.25};
  options.correction.enabled = true;
  const auto encoder = *PushEncoder::Make(partition, options);
  PushEntry push{.shard = kShard, .examples = 8};
  ASSERT_TRUE(Encode(*encoder, Floats{1, 2, 3, 4}, push));
  EXPECT_EQ(MomentumOf(*encoder), (Floats{1, 2, 3, 0}));
  PushEntry bad{.shard = kShard, .step = Step{1}, .examples = 8};
  EXPECT_FALSE(Encode(*encoder, Floats{1, kNan, 3, 4}, bad));
  PushEntry unclippable{.shard = kShard, .step = Step{2}, .examples = 8};
  EXPECT_FALSE(Encode(*encoder, Floats{1, 2, 3, 4}, unclippable, nullptr, kNan));
  EXPECT_EQ(unclippable.examples, 0u);
  PushEntry empty{.shard = kShard, .step = Step{3}, .examples = 0};
  EXPECT_TRUE(Encode(*encoder, Floats{1, 2, 3, 4}, empty));
  EXPECT_EQ(MomentumOf(*encoder), (Floats{1, 2, 3, 0}));
  EXPECT_EQ(ResidualOf(*encoder), (Floats{1, 2, 3, 0}));
}

// Factor masking would set the whole momentum of a dense vector to zero.
TEST(PushEncoderTest, VectorsHavePlainMomentum) {
  const Partition partition = *Partition::Make({{"b", {2}}}, 4096, 1);
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.5};
  options.correction = {.enabled = true, .momentum = 0.5f};
  const auto encoder = *PushEncoder::Make(partition, options);
  Floats want = {0, 0};
  for (uint64_t step = 0; step < 5; ++step) {
    for (size_t i = 0; i < 2; ++i) want[i] = 0.5f * want[i] + static_cast<float>(i + step);
    PushEntry push{.shard = kShard, .step = Step{step}, .examples = 1};
    const Floats gradient = {static_cast<float>(step), static_cast<float>(1 + step)};
    ASSERT_TRUE(Encode(*encoder, gradient, push));
    EXPECT_EQ(Decode(push, 2), want);
  }
}

TEST(PushEncoderTest, TheFactorIsAppliedFirst) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto gradient = std::make_shared<Floats>(Floats{1, 2, 3, 4});
  const auto encoder = *PushEncoder::Make(partition, {});
  PushEntry push{.shard = kShard, .examples = 1};
  ASSERT_TRUE(Encode(*encoder, *gradient, push, gradient, 0.5f));
  EXPECT_EQ(Decode(push, 4), (Floats{0.5, 1, 1.5, 2}));
  EXPECT_EQ(gradient.use_count(), 1) << "the payload is not the owner's memory";
}

// The loss scale affects neither the payload nor the residual and the momentum.
TEST(PushEncoderTest, AScaleOfAPowerOfTwoDoesNotChangeAnyBit) {
  const Partition partition = *Partition::Make({{"w", {40, 50}}}, 4096, 1);
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.1, .values = CodecId::kFp8E4m3};
  options.correction.enabled = true;
  const auto plain = *PushEncoder::Make(partition, options);
  const auto scaled = *PushEncoder::Make(partition, options);
  for (uint32_t step = 0; step < 5; ++step) {
    const Floats gradient = Gauss(2000, step);
    Floats large = gradient;
    for (float& value : large) value *= 0x1p20f;
    PushEntry want{.shard = kShard, .step = Step{step}, .examples = 1};
    PushEntry got = want;
    ASSERT_TRUE(Encode(*plain, gradient, want));
    ASSERT_TRUE(Encode(*scaled, large, got, nullptr, 0x1p-20f));
    EXPECT_EQ(Decode(got, 2000), Decode(want, 2000));
    EXPECT_EQ(ResidualOf(*scaled), ResidualOf(*plain));
    EXPECT_EQ(MomentumOf(*scaled), MomentumOf(*plain));
  }
  PushEntry bad{.shard = kShard, .step = Step{5}, .examples = 1};
  EXPECT_FALSE(Encode(*scaled, Floats(2000, INFINITY), bad, nullptr, 0x1p-20f));
  EXPECT_EQ(bad.examples, 0u);
  EXPECT_EQ(ResidualOf(*scaled), ResidualOf(*plain));
  EXPECT_EQ(MomentumOf(*scaled), MomentumOf(*plain));
}

TEST(PushEncoderTest, EveryStepHasItsOwnCodecAndDensity) {
  const Partition partition = *Partition::Make({{"w", {100, 100}}, {"b", {100}}}, 16384, 1);
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.001, .values = CodecId::kFp16};
  options.planned_steps = 100;
  options.warmup = {
      .density = {.part = 0.5}, .first_part = 0.1, .first = {.id = CodecId::kFp8E5m2}};
  const auto encoder = *PushEncoder::Make(partition, options);
  const auto encoded = [&](uint32_t tensor, uint64_t step) {
    const ShardId shard = partition.ShardsOfTensor(tensor)[0];
    PushEntry push{.shard = shard, .step = Step{step}, .examples = 1};
    EXPECT_TRUE(Encode(*encoder, Gauss(partition.value_count(shard), 1), push));
    return CheckPayload(push.payload, partition.value_count(shard)).value();
  };
  const auto sent_count = [&](const CheckedPayload& payload) {
    size_t count = 0;
    ForEachPayloadEntry(payload, [&](auto indices, auto) { count += indices.size(); });
    return count;
  };
  EXPECT_EQ(PayloadCodec(encoded(0, 9)), CodecId::kFp8E5m2);
  EXPECT_EQ(PayloadCodec(encoded(1, 9)), CodecId::kFp8E5m2);
  EXPECT_EQ(sent_count(encoded(0, 25)), 100u) << "half way from 10 % to 0.1 %";
  EXPECT_EQ(PayloadCodec(encoded(1, 25)), CodecId::kFp16);
  EXPECT_EQ(sent_count(encoded(0, 50)), 10u);
  EXPECT_EQ(sent_count(encoded(0, 99)), 10u);
}

TEST(PushEncoderTest, ARestoredEncoderContinuesBitForBit) {
  const Partition partition = *Partition::Make({{"w", {10, 10}}, {"b", {7}}}, 4096, 1);
  ClientOptions options;
  options.push = {.id = CodecId::kTopK, .density = 0.05, .values = CodecId::kFp8E4m3};
  options.correction = {.enabled = true, .nesterov = true};
  const auto push = [&](PushEncoder& encoder, ShardId shard, uint32_t step) {
    PushEntry entry{.shard = shard, .step = Step{step}, .examples = 3};
    EXPECT_TRUE(Encode(encoder, Gauss(partition.value_count(shard), step), entry));
    return entry;
  };
  const auto first = *PushEncoder::Make(partition, options);
  for (uint32_t step = 0; step < 5; ++step) {
    for (const ShardId shard : {ShardId{0}, ShardId{1}})
      ASSERT_TRUE(first->Late(push(*first, shard, step)).ok());
  }
  const std::string path = ::testing::TempDir() + "/residuals";
  const ResidualOwner owner = {.job = "train", .worker = WorkerId{1}};
  ASSERT_TRUE(
      WriteResiduals(path, owner, partition, {RunId{1}, Step{5}}, *first->residuals()).ok());
  const auto second = *PushEncoder::Make(partition, options);
  ASSERT_TRUE(second->Restore(*ReadResiduals(path, owner, partition)).ok());
  for (uint32_t step = 5; step < 10; ++step) {
    for (const ShardId shard : {ShardId{0}, ShardId{1}}) {
      const PushEntry a = push(*first, shard, step), b = push(*second, shard, step);
      EXPECT_EQ(a.payload, b.payload);
      EXPECT_EQ(a.late_examples, step == 5 ? 15u : 0u);
      EXPECT_EQ(b.late_examples, a.late_examples);
    }
  }
}

TEST(PushEncoderTest, AMomentumWithoutMomentumCorrectionIsRefused) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {});
  SavedResiduals saved;
  saved.shards.push_back({.momentum = {1, 2, 3, 4}});
  const absl::Status status = encoder->Restore(std::move(saved));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

// Values that gTop-k did not select return to the residual. They change neither the momentum nor
// the late examples.
TEST(PushEncoderTest, UnselectedValuesReturnToTheResidualOnly) {
  const Partition partition = *Partition::Make({{"w", {2, 3}}}, 4096, 1);
  for (const double density : {0.5, 1.0}) {
    const auto encoder = *PushEncoder::Make(
        partition, {.push = {.id = CodecId::kTopK, .density = density, .values = CodecId::kFp8E5m2},
                    .correction = {.enabled = true}});
    PushEntry push{.shard = kShard, .examples = 8};
    ASSERT_TRUE(Encode(*encoder, Floats{1, -9, 3.3f, 5, 0.5f, 0.25f}, push));
    Floats want = ResidualOf(*encoder);
    const Floats momentum = MomentumOf(*encoder);
    const Floats sent = Decode(push, 6);
    for (const size_t i : {0u, 2u, 3u, 4u}) want[i] += sent[i];
    ASSERT_TRUE(encoder->ReturnUnselected(push, std::vector<uint32_t>{1, 5}).ok());
    EXPECT_EQ(ResidualOf(*encoder), want);
    EXPECT_EQ(MomentumOf(*encoder), momentum);
    EXPECT_EQ((*encoder->residuals())[0].late_examples, 0u);
  }
}

}  // namespace
}  // namespace thinwire::client
