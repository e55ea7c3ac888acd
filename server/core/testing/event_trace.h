// EventTrace records every event of a shard with the oracle's interpretation of it, and no other
// state. It answers each question (which workers are live? what is next?) by reading all entries
// from the beginning.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_EVENT_TRACE_H_
#define THINWIRE_SERVER_CORE_TESTING_EVENT_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// One event with all its fields in one struct, and its consequences.
struct TraceEntry {
  enum class Kind { kSeed, kJoin, kRead, kPush, kExpire, kReturn, kOpen, kLeave };

  static TraceEntry Of(const Event& event);

  Kind kind = Kind::kSeed;
  WorkerId worker;
  Incarnation incarnation;
  Step step;
  Generation generation;
  ReadForm form;
  PushEvent push;

  bool heard = false;        // the sender was valid: the event counts as a sign of life
  std::optional<Step> read;  // the event is a read for this step
  std::optional<Verdict>
      finished;               // the verdict, if the event is a new push that finished its step
  bool has_gradient = false;  // the push has an accepted gradient
  size_t update = 0;          // the number of the update with this gradient, from 1; 0: none yet
  bool opened = false;
  Step frontier;  // after the event
  std::vector<ReadAnswer> answers;
};

class EventTrace {
 public:
  explicit EventTrace(uint32_t worker_count) : worker_count_(worker_count) {}

  void Add(const TraceEntry& entry) { entries_.push_back(entry); }
  const std::vector<TraceEntry>& entries() const { return entries_; }
  // The newest entry. REQUIRES: the trace has entries.
  TraceEntry& newest() { return entries_.back(); }
  TraceEntry& at(size_t i) { return entries_[i]; }

  bool Contains(TraceEntry::Kind kind) const;
  bool Opened() const;
  Step Frontier() const;
  // Returns the index of the last join with a newer incarnation, or nullopt if the worker never
  // joined.
  std::optional<size_t> LastJoin(WorkerId worker) const;
  bool Left(WorkerId worker) const;
  bool Live(WorkerId worker) const;
  std::vector<WorkerId> LiveWorkers() const;
  Step Next(WorkerId worker) const;
  // Returns the index of the last push of the newest incarnation that finished a step. REQUIRES:
  // the worker has joined.
  std::optional<size_t> LastFinishingPush(WorkerId worker) const;
  // Returns the index of the waiting read.
  std::optional<size_t> WaitingRead(WorkerId worker) const;
  // Returns the indices of the accepted gradients that are in no update.
  std::vector<size_t> PendingGradients() const;

 private:
  const uint32_t worker_count_;
  std::vector<TraceEntry> entries_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_EVENT_TRACE_H_
