// Makes the options of one shard from those of all shards of a job. This header is apart from
// hosted_model.h because simulated servers need no threads.
#ifndef THINWIRE_SERVER_SHARDS_SHARD_OPTIONS_H_
#define THINWIRE_SERVER_SHARDS_SHARD_OPTIONS_H_

#include <optional>

#include "common/base/ids.h"
#include "common/model/partition.h"
#include "server/core/shard.h"

namespace thinwire {

// Returns OPTIONS with the value_count, the tensor_sizes and shares_tensor of SHARD. Shards of vectors do not use
// gTop-k selection.
inline ShardOptions OptionsOf(const Partition& partition, ShardId shard, ShardOptions options) {
  options.value_count = partition.value_count(shard);
  options.shares_tensor = partition.SharesTensor(shard);
  options.tensor_sizes.clear();
  for (const Segment& segment : partition.segments(shard)) {
    options.tensor_sizes.push_back(segment.count);
  }
  if (partition.HoldsVectors(shard)) options.sparse_updates.selection_density = std::nullopt;
  return options;
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_SHARD_OPTIONS_H_
