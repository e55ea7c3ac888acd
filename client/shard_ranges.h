// Shard numbers for a person: "shards 3-9, 12".
#ifndef THINWIRE_CLIENT_SHARD_RANGES_H_
#define THINWIRE_CLIENT_SHARD_RANGES_H_

#include <span>
#include <string>

#include "common/ids.h"

namespace thinwire::client {

// "shard 3", "shards 3-9, 12", "no shard". REQUIRES: rising.
std::string ShardRanges(std::span<const ShardId> shards);

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_SHARD_RANGES_H_
