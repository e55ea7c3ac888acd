// GatherStatus makes a server's reply to Status: the state of the job, its counters, its shards and
// its workers. A new field of StatusReply is set here, or in the FillIn method of the class that
// knows its value.
#ifndef THINWIRE_SERVER_JOB_JOB_STATUS_H_
#define THINWIRE_SERVER_JOB_JOB_STATUS_H_

#include <functional>

#include "common/time/clock.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/counters.h"
#include "server/shards/frame_budget.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"

namespace thinwire {

// The parts of the job from which a reply is made.
struct StatusParts {
  const JobState& state;
  const ModelSlot& model;
  const Counters& counters;
  const FrameBudget& frames;
  const Journal& journal;
  Clock& clock;
};

// Calls DONE on the control thread with REPLY, to which the protocols have added their part, when
// every shard has reported its state. PARTS and CONTROL, the control thread, must outlive the call
// of DONE. Call on the control thread.
void GatherStatus(const StatusParts& parts, Executor& control, StatusReply reply,
                  std::function<void(StatusReply)> done);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_STATUS_H_
