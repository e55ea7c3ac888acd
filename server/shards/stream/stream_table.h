// StreamTable stores the newest process of each worker and the stream of this process. A worker with
// several members has a stream for each, and each shard belongs to one of them.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_SHARDS_STREAM_STREAM_TABLE_H_
#define THINWIRE_SERVER_SHARDS_STREAM_STREAM_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "server/shards/stream/server_stream.h"

namespace thinwire {

class StreamTable {
 public:
  // Remove calls ENDED, if set, after it has removed the stream of a newest process.
  explicit StreamTable(uint32_t worker_count, std::function<void()> ended = nullptr,
                       uint32_t member_count = 1)
      : ended_(std::move(ended)), member_count_(member_count), rows_(worker_count) {
    for (Row& row : rows_) row.processes.resize(member_count);
  }

  // Allows streams of INCARNATION, which has joined every shard. With several members, MEMBER is the
  // one that has joined, and OWNED its shards. REQUIRES: worker < worker_count.
  void Admit(WorkerId worker, Incarnation incarnation, uint32_t member = 0,
             std::span<const ShardId> owned = {}) ABSL_LOCKS_EXCLUDED(mu_);

  // Registers STREAM for a process, and ends the process's previous stream, if any, with Aborted.
  // If a newer process has replaced this process, Register returns OK, because the shards fence its
  // messages, but Find does not return STREAM. Errors: InvalidArgument for an unknown worker,
  // FailedPrecondition for a process that has not joined.
  absl::Status Register(WorkerId worker, Incarnation incarnation,
                        const std::shared_ptr<ServerStream>& stream, uint32_t member = 0)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Removes STREAM. Called when STREAM has ended.
  void Remove(const ServerStream* stream) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the stream of the process to which SHARD belongs, or null if the process has no stream or
  // is not the newest process of its worker.
  std::shared_ptr<ServerStream> Find(WorkerId worker, Incarnation incarnation, ShardId shard) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether SHARD belongs to MEMBER of WORKER.
  bool Owns(WorkerId worker, uint32_t member, ShardId shard) const ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::shared_ptr<ServerStream>> All() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Process {
    Incarnation registered;  // the one that owns `stream`
    std::shared_ptr<ServerStream> stream;
  };
  struct Row {
    Incarnation newest;
    std::vector<Process> processes;  // by member
    // With several members: the owner of each shard, as far as it has joined.
    absl::flat_hash_map<ShardId, uint32_t> owners;
  };

  // Returns the member of ROW to which SHARD belongs; nullopt if it has not joined.
  std::optional<uint32_t> OwnerOf(const Row& row, ShardId shard) const;

  const std::function<void()> ended_;
  const uint32_t member_count_;
  mutable absl::Mutex mu_;
  std::vector<Row> rows_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STREAM_STREAM_TABLE_H_
