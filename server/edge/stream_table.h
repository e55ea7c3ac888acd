// StreamTable: which process has each worker's number, and which stream it speaks on.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_STREAM_TABLE_H_
#define THINWIRE_SERVER_EDGE_STREAM_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/ids.h"
#include "server/edge/server_stream.h"

namespace thinwire {

class StreamTable {
 public:
  explicit StreamTable(uint32_t worker_count) : rows_(worker_count) {}

  // INCARNATION has joined every shard: its frames may come. REQUIRES: worker < worker_count.
  void Know(WorkerId worker, Incarnation incarnation) ABSL_LOCKS_EXCLUDED(mu_);

  // STREAM speaks for a process. The stream that spoke for it before, if any, is ended with
  // Aborted. A process that a newer one has replaced may still speak (core fences it) but is not
  // found. Errors: InvalidArgument for a worker there is not, FailedPrecondition for a process that
  // has not joined.
  absl::Status Enter(WorkerId worker, Incarnation incarnation,
                     const std::shared_ptr<ServerStream>& stream) ABSL_LOCKS_EXCLUDED(mu_);
  // STREAM is over.
  void Remove(const ServerStream* stream) ABSL_LOCKS_EXCLUDED(mu_);

  // Null if the process is not the newest or has no stream.
  std::shared_ptr<ServerStream> Find(WorkerId worker, Incarnation incarnation) const
      ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<std::shared_ptr<ServerStream>> All() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Row {
    Incarnation known;
    Incarnation speaking;
    std::shared_ptr<ServerStream> stream;
  };

  mutable absl::Mutex mu_;
  std::vector<Row> rows_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_STREAM_TABLE_H_
