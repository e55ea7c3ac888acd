#include "client/replica/replica.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/model/value_hash.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {
namespace {

using Floats = std::vector<float>;

ByteChain Fp32(const Floats& values) {
  const auto codec = *MakeCodec({.id = CodecId::kFp32});
  std::vector<std::byte> payload(codec->MaxPayloadBytes(values.size()));
  payload.resize(codec->Encode(values, RandomKeys(), payload));
  return ByteChain(std::move(payload));
}

// One matrix with its own shard, and two vectors that share a shard.
class ReplicaTest : public ::testing::Test {
 protected:
  const Partition partition_ = *Partition::Make({{"w", {2, 3}}, {"a", {2}}, {"b", {1}}}, 4096, 1);
  Replica replica_{partition_};
  const ShardId matrix_ = partition_.ShardsOfTensor(0)[0];
  const ShardId vectors_ = partition_.ShardsOfTensor(1)[0];

  Floats Tensor(uint32_t t) {
    const std::span<float> values = replica_.tensor(t);
    return {values.begin(), values.end()};
  }
};

TEST_F(ReplicaTest, FullParametersAreDecodedIntoTheTensor) {
  const float* memory = replica_.tensor(0).data();
  EXPECT_EQ(*replica_.Merge(
                {.shard = matrix_, .version = Version{7}, .payload = Fp32({1, 2, 3, 4, 5, 6})}),
            Replica::Merged::kDone);
  EXPECT_EQ(replica_.tensor(0).data(), memory);
  EXPECT_EQ(Tensor(0), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(replica_.held_version(matrix_), Version{7});
  EXPECT_EQ(replica_.held_version(vectors_), Version{0});
}

TEST_F(ReplicaTest, AModelLargerThanTheCacheGetsTheSameValues) {
  const Partition partition = *Partition::Make({{"w", {3001, 3001}}}, 250'000, 1);
  Replica replica(partition);
  size_t first = 0;
  for (const ShardId shard : partition.ShardsOfTensor(0)) {
    Floats values(partition.value_count(shard));
    for (float& v : values) v = static_cast<float>(first++);
    ASSERT_TRUE(replica.Merge({.shard = shard, .payload = Fp32(values)}).ok());
  }
  const std::vector<Segment> last = partition.segments(partition.ShardsOfTensor(0)[0]);
  const std::span<float> all = replica.tensor(0);
  ASSERT_EQ(first, all.size());
  for (size_t i = 0; i < last[0].count; ++i) {
    ASSERT_EQ(all[last[0].offset + i], static_cast<float>(i)) << "value " << i;
  }
  EXPECT_EQ(std::ranges::count(all, 0.0f), 1) << "every value was written";
}

TEST_F(ReplicaTest, ASharedShardIsScatteredToItsTensors) {
  ASSERT_TRUE(replica_.Merge({.shard = vectors_, .payload = Fp32({1, 2, 3})}).ok());
  Floats all = Tensor(1);
  all.push_back(Tensor(2)[0]);
  EXPECT_EQ(all, (Floats{1, 2, 3}));
}

TEST_F(ReplicaTest, ADeltaIsAddedToItsBaseVersionOnly) {
  const ParametersEntry delta{.shard = vectors_,
                              .version = Version{5},
                              .base_version = Version{4},
                              .kind = Parameters::ADD,
                              .payload = Fp32({1, 1, 1})};
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kNeedsFull) << "no version is held";
  ASSERT_TRUE(
      replica_.Merge({.shard = vectors_, .version = Version{3}, .payload = Fp32({1, 2, 3})}).ok());
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kNeedsFull);
  EXPECT_EQ(Tensor(1), (Floats{1, 2}));
  ASSERT_TRUE(
      replica_.Merge({.shard = vectors_, .version = Version{4}, .payload = Fp32({1, 2, 3})}).ok());
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kDone);
  EXPECT_EQ(Tensor(1), (Floats{2, 3}));
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kDone) << "the version is held already";
  EXPECT_EQ(Tensor(1), (Floats{2, 3}));
  EXPECT_EQ(replica_.held_version(vectors_), Version{5});
  replica_.Forget(vectors_);
  EXPECT_EQ(replica_.held_version(vectors_), Version{0});
}

TEST_F(ReplicaTest, AMoveDeltaSetsTheNewValues) {
  ASSERT_TRUE(
      replica_.Merge({.shard = vectors_, .version = Version{4}, .payload = Fp32({1, 2, 3})}).ok());
  const ParametersEntry delta{
      .shard = vectors_,
      .version = Version{5},
      .base_version = Version{4},
      .kind = Parameters::MOVE,
      .published_hash = HashValues(Floats{1, 2, 9}),
      .payload = EncodeUlpDelta(Floats{1, 2, 3}, Floats{1, 2, 9}, std::vector<uint32_t>{2})};
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kDone);
  EXPECT_EQ(Tensor(2), Floats{9});
  EXPECT_EQ(*replica_.Merge({.shard = vectors_,
                             .version = Version{5},
                             .base_version = Version{5},
                             .kind = Parameters::MOVE}),
            Replica::Merged::kDone)
      << "nothing changed";
  EXPECT_EQ(*replica_.Merge({.shard = vectors_,
                             .version = Version{5},
                             .base_version = Version{3},
                             .kind = Parameters::ADD}),
            Replica::Merged::kDone)
      << "the version is held already";
  EXPECT_EQ(Tensor(1), (Floats{1, 2}));
}

TEST_F(ReplicaTest, AnUnknownKindIsAnError) {
  const auto merged = replica_.Merge(
      {.shard = vectors_, .version = Version{4}, .kind = 3, .payload = Fp32({1, 2, 3})});
  EXPECT_EQ(std::string(merged.status().message()),
            "shard 0: unknown kind of parameters (expected 0 to 2, got 3)");
  EXPECT_FALSE(replica_.holds(vectors_));
}

TEST_F(ReplicaTest, AShardWithAWrongHashIsForgotten) {
  ASSERT_TRUE(
      replica_.Merge({.shard = vectors_, .version = Version{4}, .payload = Fp32({1, 2, 3})}).ok());
  ParametersEntry delta{.shard = vectors_,
                        .version = Version{5},
                        .base_version = Version{4},
                        .kind = Parameters::ADD,
                        .published_hash = HashValues(Floats{2, 3, 5}),
                        .payload = Fp32({1, 1, 1})};
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kDiffers);
  EXPECT_FALSE(replica_.holds(vectors_));
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kNeedsFull);

  delta.kind = Parameters::FULL;
  const auto merged = replica_.Merge(delta);
  EXPECT_EQ(merged.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(merged.status().message())
                .find("shard 0: wrong hash of the full values of version 5"),
            0u)
      << merged.status();
  delta.published_hash = HashValues(Floats{1, 1, 1});
  EXPECT_EQ(*replica_.Merge(delta), Replica::Merged::kDone);
}

TEST_F(ReplicaTest, APayloadOfTheWrongLengthChangesNothing) {
  const auto merged =
      replica_.Merge({.shard = matrix_, .version = Version{7}, .payload = Fp32({1, 2, 3})});
  EXPECT_EQ(merged.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(replica_.held_version(matrix_), Version{0});
  EXPECT_EQ(Tensor(0), Floats(6, 0));
}

TEST_F(ReplicaTest, SeedPayloadCarriesTheFilledValues) {
  const Floats w = {1, 2, 3, 4, 5, 6}, a = {7, 8}, b = {9};
  const std::vector<std::span<const float>> values = {w, a, b};
  ASSERT_TRUE(replica_.Fill(values).ok());
  EXPECT_EQ(replica_.SeedPayload(matrix_), Fp32(w));
  EXPECT_EQ(replica_.SeedPayload(vectors_), Fp32({7, 8, 9}));
}

}  // namespace
}  // namespace thinwire::client
