#include "client/encode/host_shard_encoder.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/payload.h"
#include "common/model/partition.h"

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

constexpr ShardId kShard{0};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The encoder of a model with one shard of four values.
class HostShardEncoderTest : public ::testing::Test {
 protected:
  void Make(const CodecSpec& spec, const ClientOptions& options = {}) {
    spec_ = spec;
    codec_ = *MakeCodec(spec);
    encoder_ = std::make_unique<HostShardEncoder>(partition_, options);
  }

  // Encodes FACTOR * GRADIENT. Returns the payload; nullopt if a value is not finite.
  std::optional<ByteChain> Encode(const Floats& gradient, float factor = 1,
                                  std::shared_ptr<const void> owner = nullptr,
                                  bool may_alias = true) {
    const Segment whole = {.tensor = 0, .offset = 0, .count = gradient.size()};
    const std::span<const float> values = gradient;
    EXPECT_TRUE(encoder_
                    ->Begin({.shard = kShard,
                             .gradient = {{&whole, 1}, {&values, 1}, std::move(owner), may_alias},
                             .factor = factor,
                             .spec = spec_,
                             .codec = *codec_,
                             .keys = RandomKeys()})
                    .ok());
    return *encoder_->Finish();
  }

  static Floats Decode(const ByteChain& payload) {
    Floats values(4);
    DecodePayload(CheckPayload(payload, values.size()).value(), values);
    return values;
  }
  Floats Residual() {
    const std::span<const float> residual = (*encoder_->feedback())[0].residual;
    return {residual.begin(), residual.end()};
  }
  Floats Momentum() {
    const std::span<const float> momentum = (*encoder_->feedback())[0].momentum;
    return {momentum.begin(), momentum.end()};
  }

  const Partition partition_ = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  CodecSpec spec_;
  std::unique_ptr<const Codec> codec_;
  std::unique_ptr<HostShardEncoder> encoder_;
};

TEST_F(HostShardEncoderTest, PayloadAndResidualAddUpToTheGradient) {
  Make({.id = CodecId::kFp8E5m2});
  const Floats gradient = {1.1f, -2.2f, 3.3f, 0};
  const Floats sent = Decode(*Encode(gradient));
  const Floats residual = Residual();
  ASSERT_EQ(residual.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sent[i] + residual[i], gradient[i]);
  }
  EXPECT_NE(residual, Floats(4)) << "the codec rounds";
}

// Algorithm 1 of DeMo: m = decay * m + g; q = the largest coefficients of m; m -= q.
TEST_F(HostShardEncoderTest, TheResidualWithADecayIsTheMomentumOfDemo) {
  Make({.id = CodecId::kTopK, .density = 0.25}, {.residual_decay = 0.5});
  Floats momentum(4, 0.0f);
  for (const Floats& gradient : {Floats{8, 1, -2, 3}, Floats{1, 0, 0, 0}, Floats{0, -4, 1, 2}}) {
    for (size_t i = 0; i < 4; ++i) momentum[i] = 0.5f * momentum[i] + gradient[i];
    const Floats sent = Decode(*Encode(gradient));
    for (size_t i = 0; i < 4; ++i) momentum[i] -= sent[i];
    EXPECT_EQ(Residual(), momentum);
  }
  EXPECT_EQ(momentum, (Floats{0.5f, 0, 0.5f, 2}));
}

TEST_F(HostShardEncoderTest, TheFactorMultipliesTheGradient) {
  Make({.id = CodecId::kFp32});
  EXPECT_EQ(Decode(*Encode({1, -2, 3, 4}, 0.5f)), (Floats{0.5f, -1, 1.5f, 2}));
}

TEST_F(HostShardEncoderTest, AValueThatIsNotFiniteLeavesTheStateUnchanged) {
  Make({.id = CodecId::kTopK, .density = 0.25}, {.correction = {.enabled = true}});
  ASSERT_TRUE(Encode({1, 2, 3, 4}).has_value());
  const Floats residual = Residual(), momentum = Momentum();
  EXPECT_EQ(Encode({1, kInfinity, 3, 4}), std::nullopt);
  EXPECT_EQ(Encode({1, 2, 3, 3e38f}, 2), std::nullopt) << "the product overflows";
  EXPECT_EQ(Residual(), residual);
  EXPECT_EQ(Momentum(), momentum);
}

TEST_F(HostShardEncoderTest, AnOwnedGradientIsSentInFp32WithoutACopy) {
  Make({.id = CodecId::kFp32});
  const auto owned = std::make_shared<Floats>(Floats{1, 2, 3, 4});
  const ByteChain lent = *Encode(*owned, 1, owned);
  EXPECT_EQ(owned.use_count(), 2) << "the payload keeps the gradient alive";
  (*owned)[0] = 7;
  EXPECT_EQ(Decode(lent)[0], 7);

  const ByteChain copy = *Encode(*owned, 1, owned, /*may_alias=*/false);
  EXPECT_EQ(owned.use_count(), 2);
  (*owned)[0] = 9;
  EXPECT_EQ(Decode(copy)[0], 7);
}

TEST_F(HostShardEncoderTest, AResidualPreventsThatAGradientIsLent) {
  Make({.id = CodecId::kFp32});
  const ByteChain late = *Encode({1, 2, 3, 4});
  ASSERT_TRUE(encoder_->GiveBack(kShard, CheckPayload(late, 4).value(), {}).ok());
  const auto owned = std::make_shared<Floats>(Floats{1, 1, 1, 1});
  EXPECT_EQ(Decode(*Encode(*owned, 1, owned)), (Floats{2, 3, 4, 5}));
  EXPECT_EQ(owned.use_count(), 1);
}

// A convolution of the shape [out, in, h, w] is a matrix with in * h * w columns. Its shards begin
// within rows.
TEST(HostShardEncoderMatrixTest, PowerSgdSendsAConvolutionOfItsRankWholly) {
  constexpr size_t kRows = 90, kColumns = 4 * 5 * 5;
  const Partition partition = *Partition::Make({{"conv", {kRows, 4, 5, 5}}}, 4050, 1);
  Floats gradient(kRows * kColumns);
  for (size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(i / kColumns) - 0.1f * static_cast<float>(i % kColumns);
  }
  const std::span<const float> tensor = gradient;
  // The matrix has the rank 2. A partial row at each end of a shard adds up to 2.
  const CodecSpec spec = {.id = CodecId::kPowerSgd, .powersgd_rank = 4};
  const auto codec = *MakeCodec(spec);
  HostShardEncoder encoder(partition, {});
  ASSERT_EQ(partition.shard_count(), 3u);
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    const ShardGradient whole = {.segments = partition.segments(shard), .tensors = {&tensor, 1}};
    ASSERT_TRUE(
        encoder.Begin({.shard = shard, .gradient = whole, .spec = spec, .codec = *codec}).ok());
    const size_t count = partition.value_count(shard);
    const CheckedPayload payload = CheckPayload(**encoder.Finish(), count).value();
    EXPECT_EQ(PayloadCodec(payload), CodecId::kPowerSgd);
    Floats decoded(count);
    DecodePayload(payload, decoded);
    const size_t first = partition.segments(shard)[0].offset;
    for (size_t i = 0; i < count; ++i) EXPECT_NEAR(decoded[i], gradient[first + i], 1e-3) << i;
  }
}

TEST_F(HostShardEncoderTest, GiveBackSkipsTheSelectedValues) {
  Make({.id = CodecId::kFp32});
  const ByteChain payload = *Encode({1, 2, 3, 4});
  const std::vector<uint32_t> selected = {1, 3};
  ASSERT_TRUE(encoder_->GiveBack(kShard, CheckPayload(payload, 4).value(), selected).ok());
  EXPECT_EQ(Residual(), (Floats{1, 0, 3, 0}));
}

TEST_F(HostShardEncoderTest, MomentumIsAddedBeforeTheCodecAndMaskedAtSentValues) {
  Make({.id = CodecId::kTopK, .density = 0.25},
       {.correction = {.enabled = true, .momentum = 0.5f}});
  EXPECT_EQ(Decode(*Encode({1, 2, 3, 4})), (Floats{0, 0, 0, 4}));
  EXPECT_EQ(Momentum(), (Floats{1, 2, 3, 0}));
  EXPECT_EQ(Residual(), (Floats{1, 2, 3, 0}));
  // u = 0.5 u + g; residual += u
  EXPECT_EQ(Decode(*Encode({0, 0, 0, 1})), (Floats{0, 0, 4.5f, 0}));
  EXPECT_EQ(Residual(), (Floats{1.5f, 3, 0, 1}));
}

TEST_F(HostShardEncoderTest, ARestoredStateContinues) {
  Make({.id = CodecId::kTopK, .density = 0.25},
       {.correction = {.enabled = true, .momentum = 0.5f}});
  const Floats residual = {1, 2, 3, 0}, momentum = {1, 2, 3, 0};
  ASSERT_TRUE(encoder_->Restore(kShard, residual, momentum).ok());
  EXPECT_EQ(Decode(*Encode({0, 0, 0, 1})), (Floats{0, 0, 4.5f, 0}));
}

TEST_F(HostShardEncoderTest, SegmentsOfSeveralTensorsAreGathered) {
  Make({.id = CodecId::kFp32});
  const Floats first = {1, 2, 3}, second = {4, 5, 6};
  const std::vector<Segment> segments = {{.tensor = 0, .offset = 1, .count = 2},
                                         {.tensor = 1, .offset = 0, .count = 2}};
  const std::vector<std::span<const float>> tensors = {first, second};
  ASSERT_TRUE(encoder_
                  ->Begin({.shard = kShard,
                           .gradient = {segments, tensors, nullptr, true},
                           .spec = spec_,
                           .codec = *codec_,
                           .keys = RandomKeys()})
                  .ok());
  EXPECT_EQ(Decode(**encoder_->Finish()), (Floats{2, 3, 4, 5}));
}

TEST_F(HostShardEncoderTest, TheSumOfSquaresShowsValuesThatAreNotFinite) {
  Make({.id = CodecId::kFp32});
  EXPECT_EQ(*encoder_->SumOfSquares(Floats{1, -2, 3}), 14);
  EXPECT_EQ(*encoder_->SumOfSquares(Floats{1, kInfinity}), kInfinity);
}

TEST_F(HostShardEncoderTest, OneShardIsBegunAtATime) {
  Make({.id = CodecId::kFp32});
  EXPECT_EQ(encoder_->most_begun(), 1u);
}

}  // namespace
}  // namespace thinwire::client
