// Judge: what becomes of a push. A pure function of what the shard knows and of the push, in this
// order:
//
//   1  another generation, or an incarnation that never joined here    kStale
//   2  an older incarnation, or one that has left                      kFenced
//   3  the step of the last push that finished one                     its verdict, again
//      a step below it                                                 kRepeat
//   4  step < max(next, frontier)                                      kLate
//   5  step > frontier + slack, or the shard is shut                   kEarly
//   6  not finite, or the sum it goes into might not be                kRefused
//   7  otherwise                                                       kAccept
#ifndef THINWIRE_SERVER_CORE_JUDGE_H_
#define THINWIRE_SERVER_CORE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/progress.h"

namespace thinwire {

// What matters about the shard and the push's worker.
struct Standing {
  Generation generation;
  WorkerProgress worker;
  Step frontier;
  uint64_t slack = 0;
  bool open = false;
  uint32_t most_folded = 1;  // gradients that one update is made from
};

struct Ruling {
  Verdict verdict = Verdict::kAccept;
  bool again = false;

  bool operator==(const Ruling&) const = default;
};

// Rows 1 and 2, which hold for reads as well: kStale, kFenced, or nothing where the sender may
// speak.
std::optional<Verdict> JudgeSender(const Standing& standing, Generation generation,
                                   Incarnation incarnation);

// The largest magnitude with which a value of a gradient of EXAMPLES examples is accepted: a sum of
// MOST_FOLDED such gradients cannot overflow. REQUIRES: neither is 0.
float LargestAccepted(uint32_t examples, uint32_t most_folded);

// Applies all rows; only row 6 reads the payload. REQUIRES: push.payload has the shard's values, or
// push.examples is 0.
Ruling Judge(const Standing& standing, const PushEvent& push);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_JUDGE_H_
