// Conversions between the wire's messages and core's types. This is the only place that validates
// input from peers: core checks nothing again. Errors are InvalidArgument and name the shard, the
// expected and the actual value.
#ifndef THINWIRE_SERVER_EDGE_CONVERT_H_
#define THINWIRE_SERVER_EDGE_CONVERT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// A model with more shards is refused, because a small Join could otherwise allocate much memory.
inline constexpr uint64_t kMaxJobShards = 65536;

// Returns the partition of a Join's tensors and compares its hash with the worker's. Errors:
// InvalidArgument for tensors without a valid partition, FailedPrecondition for another hash or
// number of servers.
absl::StatusOr<Partition> PartitionOf(const JoinRequest& request, uint32_t server_count);

// The events of one frame for one shard: seeds, then pushes, then reads, each in the frame's order.
struct ShardEvents {
  ShardId shard;
  std::vector<Event> events;
};

// Returns the events of FRAME and moves the payloads out of it. Checks every entry first, so that a
// malformed frame changes nothing. Skips seeds of another generation than GENERATION. Reads of
// published values are valid if the job PUBLISHES. REQUIRES: the frame's worker and epoch are
// checked.
absl::StatusOr<std::vector<ShardEvents>> EventsOf(WorkerFrame&& frame, const Partition& partition,
                                                  ServerId self, Generation generation,
                                                  bool publishes);

VerdictEntry VerdictEntryOf(ShardId shard, const Judgement& judgement);
WaitingEntry WaitingEntryOf(ShardId shard, const BlockedRead& read);
ShardState ShardStateOf(ShardId shard, const JoinAnswer& answer);

// Returns the masters VALUES of SHARD as one chunk per tensor segment. REQUIRES: values.size() ==
// partition.value_count(shard).
std::vector<MastersChunk> MastersChunksOf(const Partition& partition, ShardId shard,
                                          std::span<const float> values);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_CONVERT_H_
