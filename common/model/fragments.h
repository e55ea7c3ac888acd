// Fragments: the shards of a model in groups that a worker exchanges one after the other during its
// local steps (Streaming DiLoCo, Douillard et al. 2025, section 2.2; docs/streaming.md).
//
//   shards of server 0   0  2  3  5           3 fragments   0: 0 5 6   1: 1 2   2: 3 4
//   shards of server 1   1  4  6              (all of the same size)
//
// The shards of each server are dealt on their own, so that every fragment uses all servers: in
// descending order of size, each to the fragment with the fewest values of this server so far. Among
// equal fragments, the one with the fewest values in total receives it, then the one with the lowest
// number. Shards of the same size thus go to the fragments in turn: a fragment has shards of layers
// at equal distances, and a large matrix is in several fragments.
#ifndef THINWIRE_COMMON_MODEL_FRAGMENTS_H_
#define THINWIRE_COMMON_MODEL_FRAGMENTS_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/model/partition.h"

namespace thinwire {

// Returns COUNT fragments, each with its shards in ascending order. Every shard is in exactly one
// fragment. A fragment is empty only if the partition has fewer than COUNT shards. REQUIRES: COUNT
// is positive.
std::vector<std::vector<ShardId>> DealFragments(const Partition& partition, uint32_t count);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MODEL_FRAGMENTS_H_
