// Judge decides the verdict of a push. It is a pure function of the push and the shard's state; the
// first matching row applies:
//
//   1  another generation, or an incarnation that never joined this shard  kStale
//   2  an older incarnation, or one that has left                          kFenced
//   3  the step of the last push that finished a step                      its verdict, again
//      a step below it                                                     kRepeat
//   4  step < max(next, frontier)                                          kLate
//   5  step > frontier + slack, or the shard is not open                   kEarly
//   6  a value is not finite, or so large that the sum could overflow      kRefused
//   7  otherwise                                                           kAccept
#ifndef THINWIRE_SERVER_CORE_JUDGE_H_
#define THINWIRE_SERVER_CORE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/worker_table.h"

namespace thinwire {

// The state of the shard and of the pushing worker that the verdict depends on.
struct JudgeInput {
  Generation generation;
  WorkerRow worker;
  Step frontier;
  uint64_t slack = 0;
  bool open = false;
  uint32_t max_folded = 1;  // the most gradients that one update sums
};

struct Decision {
  Verdict verdict = Verdict::kAccept;
  bool again = false;  // the stored verdict of a push that was judged before

  bool operator==(const Decision&) const = default;
};

// Applies rows 1 and 2, which hold for reads as well. Returns kStale, kFenced, or nullopt for a
// valid sender.
std::optional<Verdict> JudgeSender(const JudgeInput& input, Generation generation,
                                   Incarnation incarnation);

// Returns the largest magnitude of a gradient value that the shard accepts. The sum of MAX_FOLDED
// such gradients, each weighted by EXAMPLES, stays finite. REQUIRES: both arguments are positive.
float LargestAccepted(uint32_t examples, uint32_t max_folded);

// Applies all rows. Only row 6 reads the payload. REQUIRES: push.payload has as many values as the
// shard, or push.examples is 0.
Decision Judge(const JudgeInput& input, const PushEvent& push);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_JUDGE_H_
