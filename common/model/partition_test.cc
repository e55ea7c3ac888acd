#include "common/model/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "absl/status/status.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TensorShape> Mlp() {
  return {{"w1", {784, 128}}, {"b1", {128}}, {"w2", {128, 10}}, {"b2", {10}}};
}

Partition MakeOrDie(std::vector<TensorShape> tensors, uint64_t shard_size, uint32_t servers) {
  auto partition = Partition::Make(std::move(tensors), shard_size, servers);
  EXPECT_TRUE(partition.ok()) << partition.status();
  return *std::move(partition);
}

TEST(PartitionTest, SplitsMatricesAndCombinesVectors) {
  const Partition p = MakeOrDie(Mlp(), 65536, 2);
  ASSERT_EQ(p.shard_count(), 4u);
  EXPECT_THAT(p.segments(ShardId{0}), ElementsAre(Segment{2, 0, 1280}));
  // The two vectors share a shard, which is complete when the backward pass reaches the first
  // vector.
  EXPECT_THAT(p.segments(ShardId{1}), ElementsAre(Segment{1, 0, 128}, Segment{3, 0, 10}));
  EXPECT_THAT(p.segments(ShardId{2}), ElementsAre(Segment{0, 50176, 50176}));
  EXPECT_THAT(p.segments(ShardId{3}), ElementsAre(Segment{0, 0, 50176}));
}

TEST(PartitionTest, AWholeTensorIsInOneShard) {
  std::vector<TensorShape> tensors = Mlp();
  tensors.push_back({"b3", {5000}});
  for (TensorShape& tensor : tensors) tensor.whole = true;
  const Partition p = MakeOrDie(tensors, 4096, 2);
  ASSERT_EQ(p.shard_count(), 4u);
  EXPECT_THAT(p.segments(ShardId{0}), ElementsAre(Segment{4, 0, 5000}));
  EXPECT_THAT(p.segments(ShardId{1}), ElementsAre(Segment{2, 0, 1280}));
  EXPECT_THAT(p.segments(ShardId{2}), ElementsAre(Segment{1, 0, 128}, Segment{3, 0, 10}));
  EXPECT_THAT(p.segments(ShardId{3}), ElementsAre(Segment{0, 0, 100352}));
  EXPECT_EQ(p.SharedTensor(), std::nullopt);
}

TEST(PartitionTest, TensorsApartShareNoShard) {
  std::vector<TensorShape> tensors = Mlp();
  const uint64_t plain = MakeOrDie(tensors, 65536, 2).hash();
  for (TensorShape& tensor : tensors) tensor.apart = true;
  const Partition p = MakeOrDie(tensors, 65536, 2);
  ASSERT_EQ(p.shard_count(), 5u);
  EXPECT_THAT(p.segments(ShardId{0}), ElementsAre(Segment{3, 0, 10}));
  EXPECT_THAT(p.segments(ShardId{1}), ElementsAre(Segment{2, 0, 1280}));
  EXPECT_THAT(p.segments(ShardId{2}), ElementsAre(Segment{1, 0, 128}));
  EXPECT_NE(p.hash(), plain);
  for (TensorShape& tensor : tensors) tensor.whole = true;
  EXPECT_EQ(MakeOrDie(tensors, 4096, 2).shard_count(), 4u) << "whole tensors, one in each shard";
}

TEST(PartitionTest, APartHasTheShardsOfItsTensors) {
  std::vector<TensorShape> tensors = Mlp();
  for (TensorShape& tensor : tensors) tensor.apart = true;
  const Partition whole = MakeOrDie(tensors, 65536, 2);
  EXPECT_FALSE(whole.is_part());
  EXPECT_EQ(whole.global(ShardId{3}), ShardId{3});
  EXPECT_EQ(whole.local(ShardId{5}), std::nullopt);
  const std::vector<uint32_t> owned = {0, 3};
  const Partition part = whole.Of(owned);
  EXPECT_TRUE(part.is_part());
  EXPECT_EQ(part.whole().hash(), whole.hash());
  EXPECT_NE(part.hash(), whole.hash());
  EXPECT_NE(part.hash(), whole.Of(std::vector<uint32_t>{0, 1}).hash());
  EXPECT_EQ(part.tensors()[1].name, "b2");
  EXPECT_EQ(part.value_count(), 100352u + 10u);
  ASSERT_EQ(part.shard_count(), 3u);
  EXPECT_THAT(part.segments(ShardId{0}), ElementsAre(Segment{1, 0, 10}));
  EXPECT_THAT(part.segments(ShardId{2}), ElementsAre(Segment{0, 0, 50176}));
  for (uint32_t s = 0; s < part.shard_count(); ++s) {
    const ShardId global = part.global(ShardId{s});
    EXPECT_EQ(part.server(ShardId{s}), whole.server(global));
    EXPECT_EQ(part.local(global), ShardId{s});
  }
  EXPECT_EQ(part.global(ShardId{1}), ShardId{3});
  EXPECT_EQ(part.local(ShardId{1}), std::nullopt);
}

TEST(PartitionTest, AWholeTensorThatIsTooLargeForAShardIsShared) {
  const Partition p = MakeOrDie({{.name = "w", .shape = {512, 512}, .whole = true},
                                 {.name = "long", .shape = {262145}, .whole = true},
                                 {.name = "b", .shape = {3}, .whole = true}},
                                200000, 2);
  ASSERT_EQ(p.shard_count(), 4u);
  EXPECT_THAT(p.segments(ShardId{0}), ElementsAre(Segment{2, 0, 3}));
  EXPECT_THAT(p.segments(ShardId{1}), ElementsAre(Segment{1, 131073, 131072}));
  EXPECT_THAT(p.segments(ShardId{2}), ElementsAre(Segment{1, 0, 131073}));
  EXPECT_THAT(p.segments(ShardId{3}), ElementsAre(Segment{0, 0, 262144}));
  EXPECT_EQ(p.SharedTensor(), 1u);
  for (const uint32_t s : {0u, 3u}) EXPECT_FALSE(p.SharesTensor(ShardId{s}));
  for (const uint32_t s : {1u, 2u}) EXPECT_TRUE(p.SharesTensor(ShardId{s}));
  EXPECT_EQ(MakeOrDie({{"w", {512, 513}}}, 0, 1).SharedTensor(), std::nullopt);
}

TEST(PartitionTest, TensorsOfDifferentGroupsShareNoShard) {
  std::vector<TensorShape> tensors = Mlp();
  tensors[3].group = 1;
  const Partition p = MakeOrDie(tensors, 262144, 1);
  ASSERT_EQ(p.shard_count(), 4u);
  EXPECT_THAT(p.segments(ShardId{0}), ElementsAre(Segment{3, 0, 10}));
  EXPECT_THAT(p.segments(ShardId{2}), ElementsAre(Segment{1, 0, 128}));
  EXPECT_EQ(p.group(ShardId{0}), 1u);
  EXPECT_EQ(p.group(ShardId{2}), 0u);
}

TEST(PartitionTest, AssignsShardsBySizeToTheServerWithTheSmallestLoad) {
  const Partition p = MakeOrDie(Mlp(), 65536, 2);
  EXPECT_EQ(p.server(ShardId{2}), ServerId{0});
  EXPECT_EQ(p.server(ShardId{3}), ServerId{1});
  // Both servers have equally many values before the shard of 1280 values is assigned, so server 0
  // gets it. Server 1 then has fewer values and gets the shard of 138 values.
  EXPECT_EQ(p.server(ShardId{0}), ServerId{0});
  EXPECT_EQ(p.server(ShardId{1}), ServerId{1});
  EXPECT_THAT(p.ShardsOf(ServerId{1}), ElementsAre(ShardId{1}, ShardId{3}));
}

TEST(PartitionTest, FindsTheShardsOfATensor) {
  const Partition p = MakeOrDie(Mlp(), 65536, 2);
  EXPECT_THAT(p.ShardsOfTensor(0), ElementsAre(ShardId{2}, ShardId{3}));
  EXPECT_THAT(p.ShardsOfTensor(3), ElementsAre(ShardId{1}));
}

TEST(PartitionTest, AServerMayHaveNoShard) {
  const Partition p = MakeOrDie({{"scalar", {}}}, 0, 3);
  EXPECT_EQ(p.shard_count(), 1u);
  EXPECT_THAT(p.ShardsOf(ServerId{2}), ElementsAre());
}

TEST(PartitionTest, TheDefaultShardSizeGivesEightShardsPerServerWithinItsBounds) {
  EXPECT_EQ(MakeOrDie({{"w", {100, 10}}}, 0, 1).shard_size(), kLeastShardSize);
  EXPECT_EQ(MakeOrDie({{"w", {1000, 160}}}, 0, 2).shard_size(), 10000u);
  EXPECT_EQ(MakeOrDie({{"w", {10000, 10000}}}, 0, 1).shard_size(), kLargestShardSize);
}

TEST(PartitionTest, TheHashDependsOnTensorsOrderSizeAndServers) {
  std::set<uint64_t> hashes;
  auto renamed = Mlp(), reshaped = Mlp(), reordered = Mlp();
  renamed[0].name = "w";
  reshaped[0].shape = {128, 784};
  std::swap(reordered[1], reordered[3]);
  hashes.insert(MakeOrDie(Mlp(), 65536, 2).hash());
  hashes.insert(MakeOrDie(renamed, 65536, 2).hash());
  hashes.insert(MakeOrDie(reshaped, 65536, 2).hash());
  hashes.insert(MakeOrDie(reordered, 65536, 2).hash());
  hashes.insert(MakeOrDie(Mlp(), 65535, 2).hash());
  hashes.insert(MakeOrDie(Mlp(), 65536, 3).hash());
  auto grouped = Mlp(), whole = Mlp();
  grouped[1].group = 1;
  whole[1].whole = true;
  hashes.insert(MakeOrDie(grouped, 65536, 2).hash());
  hashes.insert(MakeOrDie(whole, 65536, 2).hash());
  EXPECT_EQ(hashes.size(), 8u);
  EXPECT_EQ(MakeOrDie(Mlp(), 65536, 2), MakeOrDie(Mlp(), 65536, 2));
}

TEST(PartitionTest, TheHashIsTheSameOnEveryMachine) {
  // The expected hash was computed by an independent implementation of FNV-1a.
  EXPECT_EQ(MakeOrDie(Mlp(), 65536, 2).hash(), 6575292747086150811u);
}

TEST(PartitionTest, VectorsAndScalarsShareNoShardWithMatrices) {
  const Partition partition =
      MakeOrDie({{"weight", {40, 10}}, {"bias", {10}}, {"scale", {}}, {"kernel", {5, 1, 3}}}, 0, 1);
  size_t checked_count = 0;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    for (const Segment& segment : partition.segments(ShardId{s})) {
      EXPECT_EQ(partition.HoldsVectors(ShardId{s}),
                partition.tensors()[segment.tensor].shape.size() < 2);
      ++checked_count;
    }
  }
  EXPECT_EQ(checked_count, 4u);
}

TEST(PartitionTest, AShardIsARunOfItsTensorsMatrix) {
  const Partition partition =
      *Partition::Make({{"w", {7, 3}}, {"conv", {4, 2, 5, 1}}, {"b", {9}}}, 11, 1);
  std::vector<MatrixRun> runs;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    runs.push_back(partition.MatrixRunOf(ShardId{s}));
  }
  // b, then conv from the values 30, 20, 10 and 0 on, then w from the values 11 and 0 on.
  EXPECT_EQ(runs, (std::vector<MatrixRun>{{},
                                          {.columns = 10},
                                          {.columns = 10},
                                          {.columns = 10},
                                          {.columns = 10},
                                          {.columns = 3, .first_column = 2},
                                          {.columns = 3}}));
}

TEST(PartitionTest, ErrorsDescribeInvalidModels) {
  const auto error = [](std::vector<TensorShape> tensors, uint64_t size, uint32_t servers) {
    const absl::Status status = Partition::Make(std::move(tensors), size, servers).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error({}, 0, 1), HasSubstr("no tensors"));
  EXPECT_THAT(error({{"", {1}}}, 0, 1), HasSubstr("has no name"));
  EXPECT_THAT(error({{"w", {1}}, {"w", {2}}}, 0, 1), HasSubstr("two tensors are named \"w\""));
  EXPECT_THAT(error({{"w", {3, 0}}}, 0, 1), HasSubstr("tensor \"w\" of shape [3,0]: "));
  EXPECT_THAT(error({{"w", {int64_t{1} << 40, int64_t{1} << 40}}}, 0, 1), HasSubstr("at most"));
  EXPECT_THAT(error({{"a", {int64_t{1} << 40}}, {"b", {1}}}, 0, 1),
              HasSubstr("model: too many values"));
  EXPECT_THAT(error({{"w", {3}}}, kLargestShardSize + 1, 1), HasSubstr("got 262145"));
  EXPECT_EQ(error({{"w", {int64_t{1} << 30}}}, 1, 1),
            "model: too many shards (expected at most 65536, got 1073741824 of at most 1 values)");
  EXPECT_THAT(error({{"w", {3}}}, 0, 0),
              HasSubstr("servers: out of range (expected 1 to 4096, got 0)"));
}

TEST(PartitionTest, OnlyTheShardsThatAModelGetsAreLimited) {
  std::vector<TensorShape> vectors;
  for (int i = 0; i < 70'000; ++i) vectors.push_back({std::to_string(i), {1}});
  const auto partition = Partition::Make(vectors, 0, 2);
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_EQ(partition->shard_count(), 16u);
  for (TensorShape& tensor : vectors) tensor.shape = {1, 1};
  EXPECT_EQ(Partition::Make(vectors, 0, 2).status().message(),
            "model: too many shards (expected at most 65536, got 70000 of at most 4375 values)");

  const int64_t most = kMostShards;
  EXPECT_EQ(Partition::Make({{"w", {most}}}, 1, 1)->shard_count(), kMostShards);
  EXPECT_FALSE(Partition::Make({{"w", {most + 1}}}, 1, 1).ok());
  EXPECT_FALSE(Partition::Make({{"w", {most, 1}}, {"b", {1}}}, 1, 1).ok());
}

// Checks the properties of the partition for several models: each value is in exactly one shard; no
// shard exceeds the shard size or has values of two matrices; the shards of a matrix differ in size
// by at most one value; the loads of servers differ by at most one shard.
TEST(PartitionTest, PartitionsOfRandomModelsKeepTheirRules) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    std::vector<TensorShape> tensors;
    for (uint32_t t = 0, n = 1 + below(9); t < n; ++t) {
      TensorShape tensor{"t" + std::to_string(t), {}};
      for (uint32_t d = below(4); d > 0; --d) tensor.shape.push_back(1 + below(40));
      tensors.push_back(tensor);
    }
    const uint64_t size = 1 + below(5000);
    const uint32_t servers = 1 + below(5);
    const Partition p = MakeOrDie(tensors, size, servers);

    std::vector<std::vector<int>> seen;
    for (const TensorShape& tensor : tensors) seen.emplace_back(tensor.value_count(), 0);
    std::vector<uint64_t> load(servers, 0);
    uint64_t longest = 0;
    for (uint32_t s = 0; s < p.shard_count(); ++s) {
      uint64_t count = 0;
      for (const Segment& g : p.segments(ShardId{s})) {
        count += g.count;
        for (uint64_t i = 0; i < g.count; ++i) ++seen[g.tensor][g.offset + i];
        EXPECT_TRUE(p.segments(ShardId{s}).size() == 1 || tensors[g.tensor].shape.size() < 2);
      }
      EXPECT_EQ(count, p.value_count(ShardId{s}));
      EXPECT_GT(count, 0u);
      EXPECT_LE(count, size);
      longest = std::max(longest, count);
      load[p.server(ShardId{s}).value] += count;
    }
    for (const auto& tensor : seen) {
      for (int times : tensor) ASSERT_EQ(times, 1);
    }
    for (uint32_t t = 0; t < tensors.size(); ++t) {
      if (tensors[t].shape.size() < 2) continue;
      const auto shards = p.ShardsOfTensor(t);
      const uint64_t floor = tensors[t].value_count() / shards.size();
      for (ShardId s : shards) EXPECT_LE(p.value_count(s) - floor, 1u);
    }
    EXPECT_LE(std::ranges::max(load) - std::ranges::min(load), longest);
  }
}

}  // namespace
}  // namespace thinwire
