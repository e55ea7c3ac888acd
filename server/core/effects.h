// Effects are the results of Shard::Apply that its caller must act on: verdicts to send, reads to
// answer, and events to count.
#ifndef THINWIRE_SERVER_CORE_EFFECTS_H_
#define THINWIRE_SERVER_CORE_EFFECTS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "common/ids.h"
#include "server/core/read_form.h"

namespace thinwire {

// The verdict of a push, in the order of judging (docs/consistency.md). The numbers are those of
// the wire.
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

// The verdict of a push or, for kStale and kFenced, of a read. A push with verdict kStale, kFenced
// or kEarly finishes no step and is not a read; any other push is also a read for step + 1.
struct Judgement {
  WorkerId worker;
  Incarnation incarnation;  // the sender's, even if it is fenced
  Step step;
  Verdict verdict = Verdict::kAccept;
  bool again = false;      // the stored verdict of a push that was judged before
  Step frontier;           // after the event
  Version version;         // after the event
  uint64_t staleness = 0;  // kAccept: updates since computed_version

  bool operator==(const Judgement&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Judgement& value);
};

// A read to answer now. The caller sends Shard::Encoded(form.codec) or, for a read of published
// values, Shard::Deltas.
struct ReadAnswer {
  WorkerId worker;
  Incarnation incarnation;
  Step step;
  ReadForm form;

  bool operator==(const ReadAnswer&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ReadAnswer& value);
};

// The reply to a Join, for one shard.
struct JoinAnswer {
  Incarnation incarnation;  // the worker's newest
  bool open = false;
  bool seeded = false;
  Step frontier;
  Step predecessor_next;  // the worker's `next`
  Step largest_next;      // of all workers

  bool operator==(const JoinAnswer&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const JoinAnswer& value);
};

// A round that closed (Fold::kRound). Consecutive empty rounds that close together are reported as
// the last of them.
struct ClosedRound {
  Step step;
  // The workers of the accepted gradients, rising. If there are none, the version did not change.
  std::vector<WorkerId> accepted;

  bool operator==(const ClosedRound&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ClosedRound& value);
};

struct Effects {
  std::optional<Judgement> judgement;
  std::optional<JoinAnswer> join;
  std::vector<ReadAnswer> answers;
  std::vector<ClosedRound> rounds;
  bool opened = false;

  bool operator==(const Effects&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Effects& value);
};

// A waiting read and the reason why it waits.
struct BlockedRead {
  WorkerId worker;
  Incarnation incarnation;
  Step step;  // of the read
  Step frontier;
  bool unseeded = false;
  uint32_t live = 0;    // before the shard opens: the number of live workers
  uint32_t wanted = 0;  // before the shard opens: the number it needs; 0 once it is open
  std::vector<WorkerId>
      unfinished;  // once it is open: the live workers that have not finished the frontier

  bool operator==(const BlockedRead&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const BlockedRead& value);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_EFFECTS_H_
