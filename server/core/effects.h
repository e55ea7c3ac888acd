// Effects are the results of Shard::Apply on which its caller must act: verdicts to send, reads to
// answer, and events to count.
#ifndef THINWIRE_SERVER_CORE_EFFECTS_H_
#define THINWIRE_SERVER_CORE_EFFECTS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "common/base/ids.h"
#include "server/core/optimizer/square_sums.h"
#include "server/core/read_form.h"

namespace thinwire {

// The verdict of a push (docs/consistency.md). The numeric values of this enum are part of the wire
// format.
enum class Verdict : uint8_t {
  kAccept = 1,
  kStale = 2,
  kFenced = 3,
  kRepeat = 4,
  kLate = 5,
  kEarly = 6,
  kRefused = 7,
};

std::ostream& operator<<(std::ostream& out, Verdict verdict);

// The verdict of a push, or of a read that is stale or fenced. A push with verdict kStale, kFenced
// or kEarly finishes no step and is not a read; any other push is also a read for the step after
// its own.
struct Judgement {
  WorkerId worker;
  Incarnation incarnation;  // the sender's incarnation, also if it is fenced
  Step step;
  Verdict verdict = Verdict::kAccept;
  bool again = false;  // whether the push was judged before; `verdict` is then the stored one
  // The shard's frontier after the event; while a full round waits, that after its SumEvent.
  Step frontier;
  Version version;         // the shard's version after the event
  uint64_t staleness = 0;  // staleness of an accepted push's gradient; 0 for other verdicts
  // kRefused: the gradient was too stale for staleness_policy drop.
  bool dropped = false;
  // kAccept, with staleness_policy dcasgd: the gradient was stale, but the version log no longer
  // led to its parameters, so it was applied as it is.
  bool uncompensated = false;

  bool operator==(const Judgement&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Judgement& value);
};

// A read that the caller must answer now. The answer is the result of Shard::Deltas() if the reader
// requested published parameters, else the result of Shard::Encoded(form.codec).
struct ReadAnswer {
  WorkerId worker;
  Incarnation incarnation;
  Step step;
  ReadForm form;
  // The last step that the worker may compute before another read is answered; at least `step`.
  Step last;
  // The worker pushes the steps after `step` only when their own reads are answered.
  bool holds_pushes = false;

  bool operator==(const ReadAnswer&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ReadAnswer& value);
};

// One shard's reply to a Join.
struct JoinAnswer {
  Incarnation incarnation;  // the worker's newest incarnation
  bool open = false;
  bool seeded = false;
  Step frontier;          // as in Judgement
  Step predecessor_next;  // the worker's `next` (docs/glossary.md) at this Join
  Step largest_next;      // the largest `next` (docs/glossary.md) of all workers
  bool by_round = false;  // the mode in force is sync or backup

  bool operator==(const JoinAnswer&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const JoinAnswer& value);
};

// A round that has closed; only modes with rounds (Fold::kRound) report it. If several consecutive
// rounds without gradients close in one event, only the last of these rounds is reported.
struct ClosedRound {
  Step step;
  // The workers whose gradients the round accepted, in ascending order. If no gradient was
  // accepted, the round did not change the version.
  std::vector<WorkerId> accepted;

  bool operator==(const ClosedRound&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ClosedRound& value);
};

// A round that has all its gradients and waits for its SumEvent (rounds.h).
struct FullRound {
  Step step;
  SquareSums sums;  // of the shard

  bool operator==(const FullRound&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const FullRound& value);
};

struct Effects {
  std::optional<Judgement> judgement;
  std::optional<JoinAnswer> join;
  std::vector<ReadAnswer> answers;
  std::vector<ClosedRound> rounds;
  std::optional<FullRound> full_round;  // the round became full in this event
  bool opened = false;

  bool operator==(const Effects&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Effects& value);
};

// A waiting read and the reason for its wait.
struct BlockedRead {
  WorkerId worker;
  Incarnation incarnation;
  Step step;  // the step that the read requests
  Step frontier;
  bool unseeded = false;
  // Number of live workers before the shard opens; 0 in an open shard.
  uint32_t live = 0;
  // Number of live workers that the shard needs to open; 0 in an open shard.
  uint32_t wanted = 0;
  // In an open shard: the live workers that have not finished the frontier's step.
  std::vector<WorkerId> unfinished;

  bool operator==(const BlockedRead&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const BlockedRead& value);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_EFFECTS_H_
