#include "server/shards/memory_plan.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// The objects of a connection in gRPC and in this server, an estimate.
constexpr uint64_t kConnectionBytes = uint64_t{128} << 10;
// The queued verdict, answer and waiting notice of one shard in a stream's outbox.
constexpr uint64_t kOutboxBytesPerShard = 512;

}  // namespace

uint64_t MemoryPlan::window_bytes() const {
  if (grpc_sizes_windows()) return kMostSizedWindowBytes;
  return std::clamp(budget_bytes / 8 / std::max(1u, worker_count), kLeastFixedWindowBytes,
                    kMostFixedWindowBytes);
}

uint64_t MemoryPlan::ConnectionBytes(size_t shard_count, uint32_t workers) const {
  const uint64_t each = kConnectionBytes + 2 * kFrameBytes + shard_count * kOutboxBytesPerShard;
  return workers * each + WindowBytes(workers);
}

uint64_t MemoryPlan::WindowBytes(uint32_t workers) const {
  const uint64_t all = workers * window_bytes();
  return grpc_sizes_windows() ? std::min(all, budget_bytes / 8) : all;
}

absl::StatusOr<uint64_t> MemoryPlan::SharedFrameBytes(ServerId server, uint64_t state_bytes,
                                                      size_t shard_count, uint32_t workers) const {
  const uint64_t connections = ConnectionBytes(shard_count, workers);
  const uint64_t needed = kProgramBytes + connections + state_bytes;
  if (needed <= budget_bytes) return budget_bytes - needed;
  // The code is not ResourceExhausted, with which a worker would try again.
  return absl::InvalidArgumentError(absl::StrCat(
      "model: needs too much memory on server ", server.value, " (expected at most ", budget_bytes,
      " bytes, its --memory_budget or else the memory that was free at its start, got ", needed,
      " bytes: ", state_bytes, " for ", shard_count, " shards, ", connections,
      " for the connections of ", workers, " workers, ", kProgramBytes, " for the program)"));
}

}  // namespace thinwire
