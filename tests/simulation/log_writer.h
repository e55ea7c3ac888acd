// LogWriter writes a server's event log in the format of EventLog (server/durable/event_log.h), but
// without a thread: the caller decides which records share a commit and when the commit is flushed.
// ReplayLog reads the result.
//
//   Append -> Write: all queued records go to the file -> Flush: one Sync, then DONE of each record
#ifndef THINWIRE_TESTS_SIMULATION_LOG_WRITER_H_
#define THINWIRE_TESTS_SIMULATION_LOG_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/memory/byte_chain.h"
#include "server/durable/event_log.h"
#include "server/durable/files.h"

namespace thinwire::simulation {

// Not thread-safe. After an error, only the destructor may be called.
class LogWriter {
 public:
  using Done = std::function<void(LogSequence)>;

  // Begins a new segment with the record FIRST. FILES must outlive the log. Errors: those of the
  // file system.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Open(Files& files, std::string folder,
                                                         LogSequence first);

  // Queues RECORD. Returns its sequence.
  LogSequence Append(ByteChain record, Done done);
  bool has_queued() const { return !queued_.empty(); }
  bool has_unflushed() const { return !written_.empty(); }
  // Writes all queued records as one commit. REQUIRES: !has_unflushed().
  absl::Status Write();
  // Makes the written records durable and calls their DONE, in order.
  absl::Status Flush();
  // Returns the newest durable record.
  LogSequence durable() const { return durable_; }
  // Removes the segments whose records are all before FIRST, except the one in use.
  absl::Status RemoveBefore(LogSequence first);

 private:
  struct Entry {
    ByteChain record;
    Done done;
  };

  LogWriter(Files& files, std::string folder, LogSequence first)
      : files_(files), folder_(std::move(folder)), next_(first), durable_(first - 1) {}

  absl::Status BeginSegment();

  Files& files_;
  const std::string folder_;
  LogSequence next_;  // the sequence of the first queued record
  LogSequence durable_;
  std::vector<LogSequence> segments_;  // the first records of all segments; the last is in use
  std::unique_ptr<WritableFile> segment_;
  uint64_t segment_bytes_ = 0;
  std::vector<Entry> queued_;
  std::vector<Entry> written_;
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_LOG_WRITER_H_
