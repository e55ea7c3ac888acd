// StreamTable stores the newest process of each worker and the stream of this process.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_SHARDS_STREAM_STREAM_TABLE_H_
#define THINWIRE_SERVER_SHARDS_STREAM_STREAM_TABLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "server/shards/stream/server_stream.h"

namespace thinwire {

class StreamTable {
 public:
  // Remove calls ENDED, if set, after it has removed the stream of a newest process.
  explicit StreamTable(uint32_t worker_count, std::function<void()> ended = nullptr)
      : ended_(std::move(ended)), rows_(worker_count) {}

  // Allows streams of INCARNATION, which has joined every shard. REQUIRES: worker < worker_count.
  void Admit(WorkerId worker, Incarnation incarnation) ABSL_LOCKS_EXCLUDED(mu_);

  // Registers STREAM for a process, and ends the process's previous stream, if any, with Aborted.
  // If a newer process has replaced this process, Register returns OK, because the shards fence its
  // messages, but Find does not return STREAM. Errors: InvalidArgument for an unknown worker,
  // FailedPrecondition for a process that has not joined.
  absl::Status Register(WorkerId worker, Incarnation incarnation,
                        const std::shared_ptr<ServerStream>& stream) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes STREAM. Called when STREAM has ended.
  void Remove(const ServerStream* stream) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the stream of a process, or null if the process has no stream or is not the newest
  // process of its worker.
  std::shared_ptr<ServerStream> Find(WorkerId worker, Incarnation incarnation) const
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::shared_ptr<ServerStream>> All() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Row {
    Incarnation newest;
    Incarnation registered;  // the process that owns `stream`
    std::shared_ptr<ServerStream> stream;
  };

  const std::function<void()> ended_;
  mutable absl::Mutex mu_;
  std::vector<Row> rows_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_STREAM_STREAM_TABLE_H_
