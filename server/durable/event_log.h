// EventLog makes records durable in the order of Append(), several at a time.
//
//   Append -> queue -> log's executor: write all queued records, flush once -> done of each, in
//   order
//
// While the log's executor flushes, new records queue; the next flush covers all of them (group
// commit). A record's sequence is its position in the log, from 1.
//
// A log consists of segments, files named after the sequence of their first record:
//
//   log-00000000000000000001   segment header | record | record | ...
//   record                     record header | bytes
//
// The headers have checksums (docs/event_log.md describes every byte).
#ifndef THINWIRE_SERVER_DURABLE_EVENT_LOG_H_
#define THINWIRE_SERVER_DURABLE_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/memory/byte_chain.h"
#include "common/time/executor.h"
#include "common/time/trace.h"
#include "server/durable/files.h"

namespace thinwire {

// The position of a record in a server's log, from 1. 0: before the first record.
using LogSequence = uint64_t;

struct EventLogOptions {
  std::string folder;
  uint64_t segment_bytes = 64 << 20;  // a segment that has reached this size is closed
  Tracer* tracer = nullptr;           // must outlive the log; null: no trace
};

// Thread-safe.
class EventLog {
 public:
  struct Counts {
    uint64_t records = 0;
    uint64_t bytes = 0;  // with the headers of the records
    uint64_t commits = 0;
  };

  // Begins a new segment with the record FIRST, which is 1 for a new log and the result of
  // ReplayLog for any other. EXECUTOR writes the log; it is called the log's thread below.
  // ON_FAILURE is called once, on the log's thread, if the log cannot be written any more;
  // afterwards no record becomes durable and no DONE is called. FILES must outlive the log. Errors:
  // those of the file system; AlreadyExists if the folder has records from FIRST on. REQUIRES: the
  // folder exists, and its name is durable (SyncFolder of its parent).
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(
      Files& files, EventLogOptions options, std::unique_ptr<Executor> executor, LogSequence first,
      std::function<void(const absl::Status&)> on_failure);
  // Calls Close().
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Writes and flushes the queued records, calls their DONE, then stops the executor. Records
  // that are appended later are dropped. REQUIRES: not called on the log's thread.
  void Close();
  // Appends RECORD. DONE(sequence) is called on the log's thread when the record is durable, in the
  // order of the calls of Append. REQUIRES: record.size() < 2^32.
  void Append(ByteChain record, std::function<void(LogSequence)> done);
  // Blocks until the DONE of every record appended so far has returned, or until the log cannot be
  // written any more. REQUIRES: not called on the log's thread.
  void Flush();
  // Returns the newest record whose DONE has returned.
  LogSequence durable() const;
  // Removes the segments whose records are all before FIRST, later and on the log's thread. Keeps
  // the segment in use. An error is only logged.
  void RemoveBefore(LogSequence first);
  Counts counts() const;

 private:
  struct State;
  explicit EventLog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Calls APPLY for each record from FIRST on, in order, and returns the sequence after the last one.
// The record shares the memory of its whole segment. Cuts the records of an incomplete commit,
// which a crash has left, from the end of the last segment, and makes all others durable. Errors:
// those of the file system; DataLoss, with the file and the position, for any other damage and for
// a missing segment; the first error of APPLY, with the file and the position. REQUIRES: first >=
// 1.
absl::StatusOr<LogSequence> ReplayLog(
    Files& files, const std::string& folder, LogSequence first,
    const std::function<absl::Status(LogSequence, const ByteChain& record)>& apply);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_EVENT_LOG_H_
