// Conversions between messages of the wire and types of server/core. Only these functions validate
// input from peers; server/core does not check the input again. Errors are InvalidArgument unless
// stated otherwise. Error messages name the shard, if any, the expected value and the actual value.
#ifndef THINWIRE_SERVER_SHARDS_CONVERT_H_
#define THINWIRE_SERVER_SHARDS_CONVERT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/group_spec.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// Returns the partition of the tensors in REQUEST. Errors: InvalidArgument if the tensors have no
// valid partition or a group contains no tensor; FailedPrecondition if the partition's hash, the
// number of servers or a tensor's place in GROUPS (common/spec/place_tensors.h) differs from that
// in REQUEST.
absl::StatusOr<Partition> PartitionOf(const JoinRequest& request, uint32_t server_count,
                                      std::span<const GroupSpec> groups = {});

// The events of one frame for one shard: first seeds, then pushes, then reads. Events of the same
// kind keep their order in the frame.
struct ShardEvents {
  ShardId shard;
  std::vector<Event> events;
};

// Returns the events of FRAME and moves its payloads into them. Checks the whole frame first: a
// malformed frame is an error and yields no event. Skips seeds whose generation is not GENERATION.
// Reads of published parameters are errors unless PUBLISHES is true. REQUIRES: the caller has
// checked the worker and the epoch of FRAME.
absl::StatusOr<std::vector<ShardEvents>> EventsOf(WorkerFrame&& frame, const Partition& partition,
                                                  ServerId self, Generation generation,
                                                  bool publishes);

VerdictEntry VerdictEntryOf(ShardId shard, const Judgement& judgement);
WaitingEntry WaitingEntryOf(ShardId shard, const BlockedRead& read);
ShardState ShardStateOf(ShardId shard, const JoinAnswer& answer);

// Returns VALUES, the masters of SHARD, as one chunk per tensor segment of the shard. REQUIRES:
// values.size() == partition.value_count(shard).
std::vector<MastersChunk> MastersChunksOf(const Partition& partition, ShardId shard,
                                          std::span<const float> values);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_CONVERT_H_
