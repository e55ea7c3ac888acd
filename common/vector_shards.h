// Which shards hold vectors: biases, the scales of normalisation. Tensors of fewer than two
// dimensions share shards of their own (partition.h). They are few, and every one of their values
// matters, so selections leave them alone (Lin et al. 2018).
#ifndef THINWIRE_COMMON_VECTOR_SHARDS_H_
#define THINWIRE_COMMON_VECTOR_SHARDS_H_

#include "common/ids.h"
#include "common/partition.h"

namespace thinwire {

// REQUIRES: shard < partition.shard_count().
bool HoldsVectors(const Partition& partition, ShardId shard);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_VECTOR_SHARDS_H_
