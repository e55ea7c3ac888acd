// Judge decides the verdict of a push. It is a pure function of the push and the shard's state. The
// first row that matches the push applies; `slack` is the number of steps that a worker may be
// ahead of the frontier. While a full round waits for its SumEvent, its step counts as below the
// frontier, and the shard as not open:
//
//   1  another generation, or an incarnation that never joined this shard  kStale
//   2  an older incarnation, or one that has left                          kFenced
//   3  step <= step of the worker's last push that finished a step         the stored verdict
//      the same, but no verdict of the step is stored                      kRepeat
//   4  step < max(next, frontier)                                          kLate
//   5  step > frontier + slack, or the shard is not open                   kEarly
//   6  a value is not finite, or so large that the sum could overflow,     kRefused
//      or the gradient is too stale for staleness_policy drop
//   7  otherwise                                                           kAccept
#ifndef THINWIRE_SERVER_CORE_JUDGE_H_
#define THINWIRE_SERVER_CORE_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/spec/staleness_spec.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/worker_table.h"

namespace thinwire {

// The part of the state of the shard and of the pushing worker that determines the verdict.
struct JudgeInput {
  Generation generation;
  WorkerRecord worker;
  Step frontier;
  uint64_t slack = 0;
  bool open = false;
  uint32_t max_folded = 1;  // the maximum number of gradients in one update
  Version version;
  StalenessSpec staleness;
};

struct Decision {
  Verdict verdict = Verdict::kAccept;
  bool again = false;  // whether the push was judged before; `verdict` is then the stored one

  bool operator==(const Decision&) const = default;
};

// Applies rows 1 and 2 of the table above, which also apply to reads. Returns kStale, kFenced, or
// nullopt if the sender is valid.
std::optional<Verdict> JudgeSender(const JudgeInput& input, Generation generation,
                                   Incarnation incarnation);

// Returns the number of updates that led from the parameters of PUSH to VERSION, the current
// version of the shard. A push that claims a newer version, which only a faulty worker does, has 0.
uint64_t StalenessOf(const PushEvent& push, Version version);

// Returns the largest magnitude of a gradient value that the shard accepts. The sum of MAX_FOLDED
// such gradients, each weighted by EXAMPLES, stays finite. REQUIRES: both arguments are positive.
float LargestAccepted(uint32_t examples, uint32_t max_folded);

// Applies all rows of the table above. Only row 6 requires decoding the payload. REQUIRES:
// push.payload contains as many values as the shard, or push.examples is 0.
Decision Judge(const JudgeInput& input, const PushEvent& push);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_JUDGE_H_
