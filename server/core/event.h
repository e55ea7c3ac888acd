// Event is one input of a shard. A shard's state depends on the sequence of its events and on
// nothing else, so replays and simulated clusters drive a shard by passing events to Shard::Apply.
//
// server/shards validates all events. REQUIRES: in every event that names a worker, worker <
// Rule::max_workers; steps and numbers of examples are within the limits below.
#ifndef THINWIRE_SERVER_CORE_EVENT_H_
#define THINWIRE_SERVER_CORE_EVENT_H_

#include <cstdint>
#include <ostream>
#include <variant>

#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/spec/rule.h"
#include "server/core/optimizer/square_sums.h"
#include "server/core/read_form.h"

namespace thinwire {

// The largest step of a push or a read. Larger steps could overflow when the server adds to them.
inline constexpr Step kLargestStep{uint64_t{1} << 62};
// The largest number of examples, and of late examples, of a push.
inline constexpr uint32_t kMostExamples = uint32_t{1} << 30;

// The initial values of the shard, in fp32. A shard that already has values ignores this event.
struct SeedEvent {
  CheckedPayload payload;
};

// A new process of a worker joins. If the incarnation is not newer than the worker's known
// incarnation (a repeated Join), the event changes nothing.
struct JoinEvent {
  WorkerId worker;
  Incarnation incarnation;
};

struct ReadEvent {
  WorkerId worker;
  Incarnation incarnation;
  Generation generation;
  Step step;
  ReadForm form;
};

// A push: one worker's gradient of step `step`. The push is also a read for the next step.
struct PushEvent {
  WorkerId worker;
  Incarnation incarnation;
  Generation generation;
  Step step;
  uint32_t examples = 0;  // if 0, the push has no payload and only finishes the step
  // Number of examples in earlier late pushes whose values this push contains.
  uint32_t late_examples = 0;
  Version computed_version;
  ReadForm read_form;
  // The encoded gradient; empty if `examples` is 0. The shard releases the payload as soon as the
  // push is folded or rejected.
  CheckedPayload payload;
  float rate_factor = 1;  // multiplies the learning rate of the update (IsRateFactor)
};

// The worker's lease ran out. The worker is no longer live, but the shard keeps the worker's `next`
// step and waiting read.
struct ExpireEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// A heartbeat of a worker whose lease had expired. The worker becomes live again if it has sent a
// read.
struct ReturnEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// The start timeout ran out. From now on, the shard opens as soon as it has its initial values and
// at least one worker is live.
struct OpenEvent {};

// The worker leaves after its last verdict. The shard drops the worker's waiting read and fences
// later messages of this incarnation.
struct LeaveEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// The shard follows RULE from step FROM on: from the event in which the frontier reaches FROM. An
// operator has changed the mode or the number of workers. Replaces a rule that is not in force yet.
// A change of the mode begins at a step that no worker has begun, so FROM may become larger
// (docs/consistency.md). REQUIRES: rule.Validate() finds no problem; `rule.max_workers` is that of
// the shard's first rule.
struct RuleEvent {
  Rule rule;
  Step from;

  bool operator==(const RuleEvent&) const = default;
};

// The shard waits for all workers again before it accepts pushes, as at the start of the job.
// REQUIRES: no worker is live.
struct ShutEvent {};

// The sums of the full round STEP are known over all shards that need them: those of the model with
// clip_norm, or those that share a tensor. The shard closes the round with SUMS. Ignored unless the
// full round of this step waits. REQUIRES: SUMS is valid.
struct SumEvent {
  Step step;
  SquareSums sums;

  bool operator==(const SumEvent&) const = default;
};

// The schedules of the learning rate are for a run of EXAMPLES examples from now on: the run was
// resumed with another number of epochs.
struct PlanEvent {
  uint64_t examples = 0;
};

// Another job has made the update of the full round STEP (ShardOptions::relayed): the shard takes the
// values of PAYLOAD as its masters. Ignored unless the full round of this step waits.
struct UpdateEvent {
  Step step;
  CheckedPayload payload;
};

using Event =
    std::variant<SeedEvent, JoinEvent, ReadEvent, PushEvent, ExpireEvent, ReturnEvent, OpenEvent,
                 LeaveEvent, RuleEvent, ShutEvent, SumEvent, PlanEvent, UpdateEvent>;

// Prints EVENT as one line, with the length of the payload instead of its bytes.
std::ostream& operator<<(std::ostream& out, const Event& event);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_EVENT_H_
