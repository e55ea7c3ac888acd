// Reshard turns the checkpoints of a job into those of the same job with another number of servers
// or another shard size.
//
//   masters, slots, average, last, remainder, published   cut anew (common/model/partition.h)
//   version, examples, saturation                the largest of the old shards with these values
//   frontier, a worker's `next`                  the smallest of all old shards
//   verdicts, waiting reads, the last selection  dropped
//
// All workers have left in the result, so training waits until they have joined again. The run
// stays the same; its generation increases by one.
//
// In modes sync and backup the old shards of one step agree, apart from shards that skipped an
// update. In ssp and async, a new shard may mix values of different steps, as the old shards did.
//
// Pure functions: thread-safe.
#ifndef THINWIRE_SERVER_DURABLE_RESHARD_H_
#define THINWIRE_SERVER_DURABLE_RESHARD_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/partition.h"
#include "proto/control.pb.h"
#include "server/durable/checkpoint_format.h"

namespace thinwire {

// Returns the partition of the job whose first Join is JOIN. Errors: DataLoss if JOIN has no valid
// model.
absl::StatusOr<Partition> PartitionOfJoin(const JoinRequest& join);

// Changes the number of servers and the shard size (0: the default) in JOIN and in its
// configuration. Errors: InvalidArgument for a number out of its range.
absl::Status SetPartition(JoinRequest& join, uint32_t server_count, uint64_t shard_size);

// Returns the checkpoints of all servers of the job with SERVER_COUNT servers and SHARD_SIZE, by
// server number. Their arrays refer to the memory of SERVERS' arrays. Errors: InvalidArgument for a
// number out of its range; DataLoss, with the server, if SERVERS are not the checkpoints of all
// servers of one run.
absl::StatusOr<std::vector<Checkpoint>> Reshard(std::span<const Checkpoint> servers,
                                                uint32_t server_count, uint64_t shard_size);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_RESHARD_H_
