// MemoryPlan divides a server's memory budget. All parts are upper bounds in bytes.
//
//   program       the code, its libraries and threads
//   connections   for each worker that may join: one received frame, one message that is being sent, gRPC's
//                 flow-control window and objects, and the stream's queued entries
//   state         the shards (HostedModel::NeededBytes)
//   frames        the remaining bytes: received frames beyond the first one of each stream
#ifndef THINWIRE_SERVER_SHARDS_MEMORY_PLAN_H_
#define THINWIRE_SERVER_SHARDS_MEMORY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "common/base/ids.h"

namespace thinwire {

// The usual size of the largest message in either direction: a payload of 1 MiB with its frame.
inline constexpr uint64_t kFrameBytes = (uint64_t{1} << 20) + (uint64_t{64} << 10);

// Immutable.
struct MemoryPlan {
  static constexpr uint64_t kProgramBytes = uint64_t{32} << 20;
  static constexpr uint64_t kLeastFixedWindowBytes = uint64_t{64} << 10;
  static constexpr uint64_t kMostFixedWindowBytes = uint64_t{2} << 20;
  // The limit of the windows that gRPC 1.51 sizes: the largest value of the PID controller in its
  // flow control is 25, the binary logarithm of a window.
  static constexpr uint64_t kMostSizedWindowBytes = uint64_t{1} << 25;

  uint64_t budget_bytes = std::numeric_limits<uint64_t>::max();
  uint32_t worker_count = 1;  // of the job file; determines the windows

  // Returns whether gRPC may size the HTTP/2 windows of a connection by its bandwidth and round trip.
  // The windows of all workers must then fit into an eighth of the budget at kMostSizedWindowBytes
  // each. Otherwise the windows are fixed. A fixed window of a connection is only 64 KiB plus the rest
  // of the message that is being received, so distant workers wait for it in every message.
  bool grpc_sizes_windows() const { return budget_bytes >= sized_windows_budget(); }
  // Returns the smallest budget with which gRPC sizes the windows.
  uint64_t sized_windows_budget() const { return 8 * kMostSizedWindowBytes * worker_count; }
  // Returns the largest flow-control window of a worker: kMostSizedWindowBytes, or a fixed stream
  // window, of which those of all workers take at most an eighth of the budget, if that is not below
  // kLeastFixedWindowBytes each.
  uint64_t window_bytes() const;
  // Returns the memory that is planned for the windows of WORKERS workers.
  uint64_t WindowBytes(uint32_t workers) const;
  // Returns the memory of the connections of WORKERS workers to a server with SHARD_COUNT shards.
  // Windows that gRPC sizes take at most an eighth of the budget, also if there are more workers than
  // `worker_count`: gRPC makes them smaller when its quota is nearly used up.
  uint64_t ConnectionBytes(size_t shard_count, uint32_t workers) const;
  // Returns the part of the budget for frames beyond the first one of each stream. STATE_BYTES and
  // SHARD_COUNT describe the model on SERVER, and WORKERS workers may join. Errors: InvalidArgument
  // with all parts if the budget is too small.
  absl::StatusOr<uint64_t> SharedFrameBytes(ServerId server, uint64_t state_bytes,
                                            size_t shard_count, uint32_t workers) const;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_MEMORY_PLAN_H_
