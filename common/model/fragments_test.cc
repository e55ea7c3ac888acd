#include "common/model/fragments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

uint64_t ValuesOf(const Partition& partition, const std::vector<ShardId>& shards, uint32_t server) {
  uint64_t count = 0;
  for (const ShardId shard : shards) {
    if (partition.server(shard) == ServerId{server}) count += partition.value_count(shard);
  }
  return count;
}

// A network of twelve equal matrices and their biases.
Partition EqualLayers(uint32_t servers) {
  std::vector<TensorShape> tensors;
  for (int i = 0; i < 12; ++i) {
    tensors.push_back({"w" + std::to_string(i), {64, 64}});
    tensors.push_back({"b" + std::to_string(i), {64}});
  }
  return *Partition::Make(std::move(tensors), 4096, servers);
}

TEST(FragmentsTest, OneFragmentHasAllShardsInTheirOrder) {
  const Partition partition = EqualLayers(2);
  const auto fragments = DealFragments(partition, 1);
  ASSERT_EQ(fragments.size(), 1u);
  ASSERT_EQ(fragments[0].size(), partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) EXPECT_EQ(fragments[0][s], ShardId{s});
}

TEST(FragmentsTest, EqualLayersGoToTheFragmentsInTurn) {
  const Partition partition = EqualLayers(1);
  ASSERT_EQ(partition.shard_count(), 13u) << "12 matrices and the biases, which share a shard";
  std::vector<std::vector<uint32_t>> matrices;
  for (const std::vector<ShardId>& fragment : DealFragments(partition, 3)) {
    std::vector<uint32_t>& of_fragment = matrices.emplace_back();
    for (const ShardId shard : fragment) {
      if (!partition.HoldsVectors(shard))
        of_fragment.push_back(partition.segments(shard)[0].tensor);
    }
  }
  // The shards of the last layers have the lowest numbers.
  EXPECT_THAT(matrices, ElementsAre(ElementsAre(22, 16, 10, 4), ElementsAre(20, 14, 8, 2),
                                    ElementsAre(18, 12, 6, 0)));
}

TEST(FragmentsTest, EveryShardIsInOneFragmentAndEveryFragmentUsesAllServers) {
  const Partition partition = *Partition::Make(
      {{"w1", {784, 300}}, {"b1", {300}}, {"w2", {300, 90}}, {"b2", {90}}}, 9000, 3);
  std::set<uint32_t> dealt;
  size_t dealt_count = 0;
  const auto fragments = DealFragments(partition, 4);
  for (const std::vector<ShardId>& fragment : fragments) {
    EXPECT_TRUE(std::ranges::is_sorted(fragment));
    for (const ShardId shard : fragment) dealt.insert(shard.value);
    dealt_count += fragment.size();
    // A fragment's part of a server differs from the others' parts by at most one shard.
    for (uint32_t server = 0; server < 3; ++server) {
      const uint64_t all = ValuesOf(partition, partition.ShardsOf(ServerId{server}), server);
      EXPECT_NEAR(static_cast<double>(ValuesOf(partition, fragment, server)),
                  static_cast<double>(all) / 4, 9000);
    }
  }
  EXPECT_EQ(dealt_count, partition.shard_count());
  EXPECT_EQ(dealt.size(), partition.shard_count());
}

TEST(FragmentsTest, AFragmentIsEmptyIfThereAreTooFewShards) {
  const Partition partition = *Partition::Make({{"w", {2, 2}}, {"b", {4}}}, 4096, 1);
  EXPECT_THAT(DealFragments(partition, 3),
              ElementsAre(ElementsAre(ShardId{0}), ElementsAre(ShardId{1}), IsEmpty()));
}

}  // namespace
}  // namespace thinwire
