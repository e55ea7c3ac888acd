// The masters of one shard as chunks of tensors, for the Masters call.
#ifndef THINWIRE_SERVER_EDGE_MASTERS_H_
#define THINWIRE_SERVER_EDGE_MASTERS_H_

#include <span>
#include <vector>

#include "common/ids.h"
#include "common/partition.h"
#include "proto/control.pb.h"

namespace thinwire {

// One chunk per segment, at most kLargestShardSize values each. REQUIRES: values.size() ==
// partition.value_count(shard).
std::vector<MastersChunk> ChunksOf(const Partition& partition, ShardId shard,
                                   std::span<const float> values);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_MASTERS_H_
