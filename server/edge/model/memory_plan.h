// MemoryPlan divides a server's memory budget. All parts are upper bounds in bytes.
//
//   program       the code, its libraries and threads
//   connections   for each worker that may join: one received frame, one message that is being sent, gRPC's
//                 flow-control window and objects, and the stream's queued entries
//   state         the shards (HostedModel::NeededBytes)
//   frames        the remaining bytes: received frames beyond the first one of each stream
#ifndef THINWIRE_SERVER_EDGE_MODEL_MEMORY_PLAN_H_
#define THINWIRE_SERVER_EDGE_MODEL_MEMORY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "common/ids.h"

namespace thinwire {

// The usual size of the largest message in either direction: a payload of 1 MiB with its frame.
inline constexpr uint64_t kFrameBytes = (uint64_t{1} << 20) + (uint64_t{64} << 10);

// Immutable.
struct MemoryPlan {
  static constexpr uint64_t kProgramBytes = uint64_t{32} << 20;
  static constexpr uint64_t kLeastWindowBytes = uint64_t{64} << 10;
  static constexpr uint64_t kMostWindowBytes = uint64_t{2} << 20;

  uint64_t budget_bytes = std::numeric_limits<uint64_t>::max();
  uint32_t worker_count = 1;  // of the job file; determines the windows

  // Returns the flow-control window of a worker's stream: kMostWindowBytes, or less if the windows
  // of all workers would take more than an eighth of the budget, but at least kLeastWindowBytes.
  uint64_t window_bytes() const;
  // Returns the memory of the connections of WORKERS workers to a server with SHARD_COUNT shards.
  uint64_t ConnectionBytes(size_t shard_count, uint32_t workers) const;
  // Returns the part of the budget for frames beyond the first one of each stream. STATE_BYTES and
  // SHARD_COUNT describe the model on SERVER, and WORKERS workers may join. Errors: InvalidArgument
  // with all parts if the budget is too small.
  absl::StatusOr<uint64_t> SharedFrameBytes(ServerId server, uint64_t state_bytes,
                                            size_t shard_count, uint32_t workers) const;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_MODEL_MEMORY_PLAN_H_
