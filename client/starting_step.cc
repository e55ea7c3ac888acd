#include "client/starting_step.h"

#include <algorithm>
#include <cstdint>

namespace thinwire::client {

Step StartingStep(std::span<const JoinReply> replies) {
  uint64_t next = 0;
  uint64_t frontier = 0;
  bool open_round = false;
  for (const JoinReply& reply : replies) {
    for (const ShardState& shard : reply.shards()) {
      next = std::max({next, shard.predecessor_next(), shard.largest_next()});
      frontier = std::max(frontier, shard.frontier());
      open_round = open_round || (reply.by_round() && shard.open());
    }
  }
  return Step{std::max(next, frontier + (open_round ? 1 : 0))};
}

}  // namespace thinwire::client
