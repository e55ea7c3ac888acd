// Effects: what the caller of Shard::Apply must now do: send a verdict, answer reads, and count
// what happened.
#ifndef THINWIRE_SERVER_CORE_EFFECTS_H_
#define THINWIRE_SERVER_CORE_EFFECTS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "common/ids.h"
#include "server/core/read_form.h"

namespace thinwire {

// What becomes of a push, in the order of judging (docs/consistency.md). The numbers are those of
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

// The verdict on the push or, for kStale and kFenced, on the read that was applied. A push that is
// judged kStale, kFenced or kEarly finishes nothing and reads nothing; the others are also reads
// for step + 1.
struct Judgement {
  WorkerId worker;
  Incarnation incarnation;  // of the sender, also when it is fenced
  Step step;
  Verdict verdict = Verdict::kAccept;
  bool again = false;      // the stored verdict of a push that came again
  Step frontier;           // after the event
  Version version;         // after the event
  uint64_t staleness = 0;  // kAccept: updates between computed_version and this push

  bool operator==(const Judgement&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Judgement& value);
};

// A read that is now answered: send the worker Shard::Encoded(form.codec), or Shard::Deltas of what
// is published.
struct Answer {
  WorkerId worker;
  Incarnation incarnation;
  Step step;
  ReadForm form;

  bool operator==(const Answer&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Answer& value);
};

// What a Join is told.
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

// A round that closed (kRound). Rounds that nobody gave to and that close together are one entry,
// the last of them.
struct RoundClosed {
  Step step;
  std::vector<WorkerId>
      accepted;  // rising; their gradients made the update. Empty: the version did not move.

  bool operator==(const RoundClosed&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const RoundClosed& value);
};

struct Effects {
  std::optional<Judgement> judgement;
  std::optional<JoinAnswer> join;
  std::vector<Answer> answers;
  std::vector<RoundClosed> rounds;
  bool opened = false;

  bool operator==(const Effects&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Effects& value);
};

// Whom a waiting read waits for.
struct Wait {
  WorkerId worker;
  Incarnation incarnation;
  Step step;  // of the read
  Step frontier;
  bool unseeded = false;
  uint32_t live = 0;    // while the shard is shut: how many are present
  uint32_t wanted = 0;  // while the shard is shut: how many it waits for; 0 once it is open
  std::vector<WorkerId> unfinished;  // once open: the live workers that hold the frontier back

  bool operator==(const Wait&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Wait& value);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_EFFECTS_H_
