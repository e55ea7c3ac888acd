// Convert: the one place that distrusts what peers say. What passes is fit for core, which checks
// nothing again; what does not is InvalidArgument that names the shard, what was wanted and what
// came.
#ifndef THINWIRE_SERVER_EDGE_CONVERT_H_
#define THINWIRE_SERVER_EDGE_CONVERT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// A model of more shards is refused: a Join is small, what it asks for is not.
inline constexpr uint64_t kMostJobShards = 65536;

// The partition of a Join, with the hash that the worker computed compared. Errors: InvalidArgument
// for tensors that make no partition, FailedPrecondition for another hash or server count.
absl::StatusOr<Partition> PartitionOf(const JoinRequest& request, uint32_t server_count);

// A frame's events for one shard: seeds, then pushes, then reads, each in their order.
struct ShardEvents {
  ShardId shard;
  std::vector<Event> events;
};

// Every entry is checked before any is used, so that a malformed frame changes nothing. Seeds of
// another generation than GENERATION are left out: they are of a history that is over. Deltas may
// be read if the job PUBLISHES them. Takes the payloads out of FRAME. REQUIRES: the frame's worker
// and epoch are checked.
absl::StatusOr<std::vector<ShardEvents>> EventsOf(WorkerFrame&& frame, const Partition& partition,
                                                  ServerId self, Generation generation,
                                                  bool publishes);

VerdictEntry VerdictEntryOf(ShardId shard, const Judgement& judgement);
WaitingEntry WaitingEntryOf(ShardId shard, const Wait& wait);
ShardState ShardStateOf(ShardId shard, const JoinAnswer& answer);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_CONVERT_H_
