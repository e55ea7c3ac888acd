#include "common/vector_shards.h"

namespace thinwire {

bool HoldsVectors(const Partition& partition, ShardId shard) {
  return partition.tensors()[partition.segments(shard)[0].tensor].shape.size() < 2;
}

}  // namespace thinwire
