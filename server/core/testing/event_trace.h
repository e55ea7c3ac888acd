// EventTrace records every event of a shard together with its meaning under the rule of
// docs/consistency.md, as the oracle (oracle.h) decides it, and stores no other state. Each query
// (the live workers, a worker's `next`, ...) reads all entries from the beginning.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_EVENT_TRACE_H_
#define THINWIRE_SERVER_CORE_TESTING_EVENT_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "server/core/effects.h"
#include "server/core/event.h"

namespace thinwire {

// One event and its consequences. The struct has the fields of all event types.
struct TraceEntry {
  enum class Kind { kSeed, kJoin, kRead, kPush, kExpire, kReturn, kOpen, kLeave, kRule, kSum };

  static TraceEntry Of(const Event& event);

  Kind kind = Kind::kSeed;
  WorkerId worker;
  Incarnation incarnation;
  Step step;
  Generation generation;
  ReadForm form;
  PushEvent push;
  Rule rule;        // of a rule event; `step` is the first step of this rule
  SquareSums sums;  // of a sum event

  bool heard = false;        // whether the sender is valid; if so, its worker is no longer expired
  std::optional<Step> read;  // the step of the read, if the event is a read
  // The verdict, if the event is a new push that finished its step.
  std::optional<Verdict> finished;
  bool has_gradient = false;  // whether the event is a push with an accepted gradient
  uint64_t staleness = 0;     // the staleness of the accepted gradient
  size_t update = 0;  // number of the update that contains this gradient, from 1; 0: no update yet
  bool opened = false;
  std::optional<Rule> in_force;  // the rule that comes into force with this event
  Step frontier;                 // the frontier after the event
  std::vector<ReadAnswer> answers;
};

class EventTrace {
 public:
  explicit EventTrace(uint32_t worker_count) : worker_count_(worker_count) {}

  void Add(const TraceEntry& entry) { entries_.push_back(entry); }
  const std::vector<TraceEntry>& entries() const { return entries_; }
  // Returns the newest entry. REQUIRES: the trace is not empty.
  TraceEntry& newest() { return entries_.back(); }
  TraceEntry& at(size_t i) { return entries_[i]; }

  bool Contains(TraceEntry::Kind kind) const;
  bool Opened() const;
  // Returns the newest rule that came into force, or nullopt if none did.
  std::optional<Rule> RuleInForce() const;
  // Returns the position in the trace of the rule event that is not in force yet, or nullopt if
  // there is none.
  std::optional<size_t> NextRule() const;
  // Returns the last step that the answers to the newest incarnation of WORKER let it compute.
  std::optional<Step> Allowed(WorkerId worker) const;
  // Returns the largest step that a joined worker may be computing. Returns nullopt if there is
  // none.
  std::optional<Step> LargestAllowed() const;
  // Returns the verdict that the newest incarnation of WORKER has received for STEP, if it is among
  // the newest ones. REQUIRES: WORKER has joined.
  std::optional<Verdict> KnownVerdict(WorkerId worker, Step step) const;
  Step Frontier() const;
  // Returns the position in the trace at which the worker's newest incarnation joined, or nullopt
  // if the worker never joined.
  std::optional<size_t> LastJoin(WorkerId worker) const;
  bool Left(WorkerId worker) const;
  bool Live(WorkerId worker) const;
  std::vector<WorkerId> LiveWorkers() const;
  Step Next(WorkerId worker) const;
  // Returns the position in the trace of the last push with which the worker's newest incarnation
  // finished a step, or nullopt if there is none. REQUIRES: the worker has joined.
  std::optional<size_t> LastFinishingPush(WorkerId worker) const;
  // Returns the position in the trace of the worker's waiting read, or nullopt if no read waits.
  std::optional<size_t> WaitingRead(WorkerId worker) const;
  // Returns the positions in the trace of the accepted gradients that are not yet part of an
  // update.
  std::vector<size_t> PendingGradients() const;

 private:
  const uint32_t worker_count_;
  std::vector<TraceEntry> entries_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_EVENT_TRACE_H_
