// GatherStatus makes a server's reply to Status: the state of the job, its counters, its shards and
// its workers. A new field of StatusReply is set here, or in the FillIn method of the class that
// knows its value.
#ifndef THINWIRE_SERVER_JOB_JOB_STATUS_H_
#define THINWIRE_SERVER_JOB_JOB_STATUS_H_

#include <functional>

#include "common/time/clock.h"
#include "proto/control.pb.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/deals/deal_lead.h"
#include "server/protocols/job_identity.h"
#include "server/protocols/membership/membership.h"
#include "server/protocols/precision/precision_lead.h"
#include "server/protocols/rules/scaler.h"
#include "server/shards/counters.h"
#include "server/shards/frame_budget.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"

namespace thinwire {

// The parts of the job from which a reply is made.
struct StatusParts {
  const JobIdentity& identity;
  bool insecure;  // JobOptions::insecure
  const ModelSlot& model;
  const Membership& membership;
  const Scaler& scaler;
  const DealLead& deal_lead;
  const PrecisionLead* precision;  // null: the server is not the lead, or push is not adaptive
  const JobCheckpoints& checkpoints;
  const Counters& counters;
  const FrameBudget& frames;
  const Journal& journal;
  Clock& clock;
};

// Calls DONE with the reply on the control thread, when every shard has reported its state. PARTS
// and CONTROL, the control thread, must outlive the call of DONE. Call on the control thread.
void GatherStatus(const StatusParts& parts, Executor& control,
                  std::function<void(StatusReply)> done);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_STATUS_H_
