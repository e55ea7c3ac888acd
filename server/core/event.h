// Event: everything that can happen to a shard. A shard's state follows from its events in their
// order and from nothing else, so the event log consists of these events, and replay as well as
// simulated clusters call Apply with them.
//
// Events were validated by server/edge. REQUIRES, for every event with a worker: worker < workers
// of the shard's rule.
#ifndef THINWIRE_SERVER_CORE_EVENT_H_
#define THINWIRE_SERVER_CORE_EVENT_H_

#include <cstdint>
#include <ostream>
#include <variant>

#include "common/codec/payload.h"
#include "common/ids.h"
#include "server/core/read_form.h"

namespace thinwire {

// The first values of the shard, in fp32. Later seeds change nothing.
struct SeedEvent {
  CheckedPayload payload;
};

// A new process of a worker. An incarnation that is not newer than the known one (a repeated Join)
// changes nothing.
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

// A gradient of `step`, and a read for step + 1.
struct PushEvent {
  WorkerId worker;
  Incarnation incarnation;
  Generation generation;
  Step step;
  uint32_t examples = 0;       // 0: no payload; the push only finishes the step
  uint32_t late_examples = 0;  // of earlier late pushes whose values are part of this one
  Version computed_version;
  ReadForm read_form;
  // Empty if examples is 0. The shard releases it as soon as it is folded or rejected.
  CheckedPayload payload;
};

// The worker's lease ran out. The worker is no longer live, but keeps its row and its waiting read.
struct ExpireEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// A heartbeat of an expired worker. The worker is live again if it has read.
struct ReturnEvent {
  WorkerId worker;
  Incarnation incarnation;
};

// start_timeout ran out. The shard opens with the live workers.
struct OpenEvent {};

// The worker leaves after its last verdict. Its waiting read is dropped and its incarnation closed.
struct LeaveEvent {
  WorkerId worker;
  Incarnation incarnation;
};

using Event = std::variant<SeedEvent, JoinEvent, ReadEvent, PushEvent, ExpireEvent, ReturnEvent,
                           OpenEvent, LeaveEvent>;

// Prints one line, with the length of a payload in place of its bytes.
std::ostream& operator<<(std::ostream& out, const Event& event);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_EVENT_H_
