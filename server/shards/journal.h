// Journal is a server's way to its event log: a record's callback runs when the record is durable.
// In a job without a log, it runs at once.
#ifndef THINWIRE_SERVER_SHARDS_JOURNAL_H_
#define THINWIRE_SERVER_SHARDS_JOURNAL_H_

#include <functional>
#include <memory>
#include <utility>

#include "server/durable/event_log.h"
#include "server/durable/log_record.h"

namespace thinwire {

// Thread-safe, except Start and Stop.
class Journal {
 public:
  // Writes records to LOG from now on. Call before any other thread uses the journal.
  void Start(std::unique_ptr<EventLog> log) { log_ = std::move(log); }
  // Makes all records durable, calls their callbacks, and closes the log. Later records are
  // dropped.
  void Stop() {
    if (log_ != nullptr) log_->Close();
  }

  // Returns whether the job has an event log.
  bool logs() const { return log_ != nullptr; }

  // Calls DONE(sequence) when RECORD is durable, on the log's thread, in the order of the calls.
  // Without a log, calls DONE(0) within this call.
  void Append(const LogRecord& record, std::function<void(LogSequence)> done) {
    if (log_ == nullptr) return done(0);
    log_->Append(EncodeRecord(record), std::move(done));
  }
  // Blocks until the callbacks of all records appended so far have returned, or the log has failed.
  void Flush() {
    if (log_ != nullptr) log_->Flush();
  }
  // Returns the newest durable record; 0 without a log.
  LogSequence durable() const { return log_ == nullptr ? 0 : log_->durable(); }
  void RemoveBefore(LogSequence first) {
    if (log_ != nullptr) log_->RemoveBefore(first);
  }
  // REQUIRES: logs().
  EventLog::Counts counts() const { return log_->counts(); }

 private:
  std::unique_ptr<EventLog> log_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_JOURNAL_H_
