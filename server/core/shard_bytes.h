// ShardBytes() estimates the memory of a shard, so that a server refuses a model that does not fit
// its budget (server/shards/memory_plan.h). Pure.
#ifndef THINWIRE_SERVER_CORE_SHARD_BYTES_H_
#define THINWIRE_SERVER_CORE_SHARD_BYTES_H_

#include <cstdint>

#include "server/core/optimizer/optimizer.h"
#include "server/core/shard.h"

namespace thinwire {

// Returns an upper bound of the memory that a shard keeps between events, in bytes. It includes the
// newest encoded parameters, which all readers share, and, if options.checkpointed is set, one
// snapshot that is being written or kept. It includes no received payloads.
uint64_t ShardBytes(const ShardOptions& options, const Optimizer& optimizer);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_SHARD_BYTES_H_
