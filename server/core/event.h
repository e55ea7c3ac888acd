// Event: all that can happen to a shard. What a shard becomes follows from its events in their
// order and from nothing else, so the log is the events, replay is Apply, and a simulated cluster
// is Apply.
//
// An event is what the edge let through. REQUIRES, wherever there is a worker: worker < workers of
// the shard's rule.
#ifndef THINWIRE_SERVER_CORE_EVENT_H_
#define THINWIRE_SERVER_CORE_EVENT_H_

#include <cstdint>
#include <ostream>
#include <variant>

#include "common/codec/payload.h"
#include "common/ids.h"
#include "server/core/read_form.h"

namespace thinwire {

// The first values, in fp32. Only the first SeedEvent counts.
struct SeedEvent {
  CheckedPayload payload;
};

// A worker's new process. An incarnation that is not newer than the known one changes nothing (a
// repeated Join).
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

// A gradient of step, and a read for step + 1.
struct PushEvent {
  WorkerId worker;
  Incarnation incarnation;
  Generation generation;
  Step step;
  uint32_t examples = 0;       // 0: no payload, finishes the step and gives nothing
  uint32_t late_examples = 0;  // of the late pushes whose values are in this one
  Version computed_version;
  ReadForm read_form;
  CheckedPayload payload;  // empty if examples is 0; freed when the push is folded or refused
};

// The lease ran out: takes the worker out of the live, never out of the table; its waiting read
// stays.
struct ExpireEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// A heartbeat of an expired worker that has read: it is live again.
struct ReturnEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// start_timeout ran out: opens with those present.
struct OpenEvent {};

// The worker is done (after all its verdicts): drops its waiting read and closes the incarnation.
struct LeaveEvent {
  WorkerId worker;
  Incarnation incarnation;
};

using Event = std::variant<SeedEvent, JoinEvent, ReadEvent, PushEvent, ExpireEvent, ReturnEvent,
                           OpenEvent, LeaveEvent>;

// One line; of a payload its length.
std::ostream& operator<<(std::ostream& out, const Event& event);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_EVENT_H_
