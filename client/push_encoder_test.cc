#include "client/push_encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

constexpr ShardId kShard{0};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Floats Decode(const PushEntry& push, size_t count) {
  Floats values(count);
  DecodePayload(push.payload, values);
  return values;
}

TEST(PushEncoderTest, WhatIsNotFiniteLeavesTheResidualAsItWas) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {.id = CodecId::kFp8E5m2}, true);
  PushEntry push{.shard = kShard, .examples = 8};
  ASSERT_TRUE(encoder->Encode(Floats{1.1f, 2.2f, 3.3f, 4.4f}, push));
  EXPECT_FALSE(push.payload.empty());
  const Floats before(encoder->residual(kShard).begin(), encoder->residual(kShard).end());
  ASSERT_EQ(before.size(), 4u);
  PushEntry bad{.shard = kShard, .examples = 8};
  EXPECT_FALSE(encoder->Encode(Floats{1, kNan, 3, 4}, bad));
  EXPECT_EQ(bad.examples, 0u);
  EXPECT_TRUE(bad.payload.empty());
  EXPECT_EQ(Floats(encoder->residual(kShard).begin(), encoder->residual(kShard).end()), before);
}

TEST(PushEncoderTest, ExamplesAreOwedUntilValuesAreAccepted) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {}, true);
  const Floats gradient = {1, 2, 3, 4};
  const auto push = [&](uint32_t examples) {
    PushEntry entry{.shard = kShard, .examples = examples};
    encoder->Encode(gradient, entry);
    return entry;
  };
  encoder->Late(push(8));
  PushEntry second = push(5);
  EXPECT_EQ(second.late_examples, 8u);
  EXPECT_EQ(Decode(second, 4), (Floats{2, 4, 6, 8}));
  encoder->Late(second);
  const PushEntry empty = push(0);
  encoder->Accepted(empty);
  const PushEntry third = push(7);
  EXPECT_EQ(third.late_examples, 13u) << "a push of weight 0 pays nothing back";
  EXPECT_EQ(Decode(third, 4), (Floats{3, 6, 9, 12}));
  encoder->Accepted(third);
  EXPECT_EQ(push(7).late_examples, 0u);
  EXPECT_EQ(Decode(push(7), 4), gradient);
}

TEST(PushEncoderTest, ProducedIsAppliedPlusResidual) {
  constexpr size_t kCount = 64;
  const Partition partition = *Partition::Make({{"w", {8, 8}}}, 4096, 1);
  for (const CodecId id : {CodecId::kFp8E5m2, CodecId::kFp8E4m3, CodecId::kTopK}) {
    const auto encoder = *PushEncoder::Make(partition, {.id = id, .density = 0.1}, true);
    std::mt19937 random(42);
    std::normal_distribution<float> normal;
    std::vector<double> produced(kCount), applied(kCount);
    for (int step = 0; step < 50; ++step) {
      Floats gradient(kCount);
      for (size_t i = 0; i < kCount; ++i) produced[i] += gradient[i] = normal(random);
      PushEntry push{.shard = kShard, .examples = 1};
      ASSERT_TRUE(encoder->Encode(gradient, push));
      if (step % 7 == 3) {
        encoder->Late(push);
        continue;
      }
      encoder->Accepted(push);
      const Floats values = Decode(push, kCount);
      for (size_t i = 0; i < kCount; ++i) applied[i] += values[i];
    }
    const std::span<const float> residual = encoder->residual(kShard);
    ASSERT_EQ(residual.size(), kCount);
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_NEAR(produced[i], applied[i] + residual[i], 1e-4) << id << " " << i;
    }
  }
}

TEST(PushEncoderTest, WhereMatricesGoSparselyVectorsGoDense) {
  const Partition partition = *Partition::Make({{"w", {40, 50}}, {"b", {50}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(
      partition, {.id = CodecId::kTopK, .density = 0.01, .values = CodecId::kFp16}, true);
  PushEntry matrix{.shard = partition.ShardsOfTensor(0)[0], .examples = 1};
  ASSERT_TRUE(encoder->Encode(Floats(2000, 1), matrix));
  EXPECT_EQ(PayloadCodec(matrix.payload), CodecId::kTopK);
  PushEntry vector{.shard = partition.ShardsOfTensor(1)[0], .examples = 1};
  ASSERT_TRUE(encoder->Encode(Floats(50, 1), vector));
  EXPECT_EQ(PayloadCodec(vector.payload), CodecId::kFp16);
}

TEST(PushEncoderTest, WhatGoesAsItIsIsLentIfItHasAnOwner) {
  const Partition partition = *Partition::Make({{"w", {50, 80}}}, 4096, 1);
  const auto encoder = *PushEncoder::Make(partition, {.id = CodecId::kFp32}, true);
  const auto gradient = std::make_shared<std::vector<float>>(4000, 0.5f);
  PushEntry copied{.shard = ShardId{0}, .examples = 8};
  ASSERT_TRUE(encoder->Encode(*gradient, copied));
  PushEntry lent{.shard = ShardId{0}, .examples = 8};
  ASSERT_TRUE(encoder->Encode(*gradient, lent, gradient));
  EXPECT_EQ(lent.payload, copied.payload);
  EXPECT_EQ(lent.payload.pieces().back().bytes.data(),
            reinterpret_cast<const std::byte*>(gradient->data()));
  EXPECT_EQ(gradient.use_count(), 2);
  encoder->Late(lent);  // from now on there is a residual to be added
  PushEntry next{.shard = ShardId{0}, .examples = 8};
  ASSERT_TRUE(encoder->Encode(*gradient, next, gradient));
  std::vector<float> sent(4000);
  DecodePayload(next.payload, sent);
  EXPECT_EQ(sent, std::vector<float>(4000, 1.0f));
}

}  // namespace
}  // namespace thinwire::client
