#include "common/vector_shards.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(VectorShardsTest, VectorsAndScalarsHaveShardsThatMatricesAreNotIn) {
  const Partition partition =
      Partition::Make({{"weight", {40, 10}}, {"bias", {10}}, {"scale", {}}, {"kernel", {5, 1, 3}}},
                      0, 1)
          .value();
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    for (const Segment& segment : partition.segments(ShardId{s})) {
      EXPECT_EQ(HoldsVectors(partition, ShardId{s}),
                partition.tensors()[segment.tensor].shape.size() < 2);
    }
  }
}

}  // namespace
}  // namespace thinwire
