// The protocols of one server of a job (server/protocols/protocol.h). Whether the server leads is
// decided here, and nowhere else.
#ifndef THINWIRE_SERVER_JOB_JOB_PROTOCOLS_H_
#define THINWIRE_SERVER_JOB_JOB_PROTOCOLS_H_

#include <memory>
#include <vector>

#include "common/time/clock.h"
#include "common/time/executor.h"
#include "server/job/job_options.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/deals/deal_lead.h"
#include "server/protocols/membership/admission_follower.h"
#include "server/protocols/membership/admission_lead.h"
#include "server/protocols/membership/join_queue.h"
#include "server/protocols/membership/member_events.h"
#include "server/protocols/membership/membership_lead.h"
#include "server/protocols/membership/number_lead.h"
#include "server/protocols/membership/training_start.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/protocols/peers.h"
#include "server/protocols/precision/precision_lead.h"
#include "server/protocols/protocol.h"
#include "server/protocols/relay/relay_lead.h"
#include "server/protocols/rules/rule_follower.h"
#include "server/protocols/rules/rule_lead.h"
#include "server/protocols/rules/wait_lead.h"
#include "server/protocols/state/job_state.h"
#include "server/protocols/sums/shard_sums.h"
#include "server/protocols/sums/sum_follower.h"
#include "server/protocols/sums/sum_lead.h"
#include "server/shards/counters.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

// The parts of a server that its protocols use. They must outlive the protocols.
struct ProtocolParts {
  const JobOptions& options;
  JobState& state;
  StoredState& stored;
  JobCheckpoints& checkpoints;
  ModelSlot& model;
  Counters& counters;
  WorkerTokens& tokens;
  Peers* peers;  // null except at the lead of several servers
  Clock& clock;
  Executor& control;
};

struct JobProtocols {
  // All protocols, except JobCheckpoints, in the order of their ticks. A job calls JobCheckpoints
  // itself: it ticks also while the servers have to agree on a checkpoint, which suspends the
  // others, begins before them, because it decides whether they do, and ends after the control
  // thread.
  std::vector<std::unique_ptr<Protocol>> all;

  // The protocols in `all` that a job calls itself, because they receive requests.
  MemberEvents* members = nullptr;
  TrainingStart* start = nullptr;
  ShardSums* shard_sums = nullptr;  // null: no round waits for sums (MayNeedSums)

  // At the lead; null at another server.
  MembershipLead* member_lead = nullptr;
  JoinQueue* joins = nullptr;
  NumberLead* numbers = nullptr;
  AdmissionLead* admission = nullptr;
  DealLead* deals = nullptr;
  RuleLead* rules = nullptr;
  WaitLead* waits = nullptr;           // null also without auto_backup and auto_slack
  PrecisionLead* precision = nullptr;  // null also without push: adaptive
  SumLead* sum_lead = nullptr;         // null also if no round waits for sums
  RelayLead* relay = nullptr;          // null also if the shards make their updates

  // At another server; null at the lead.
  AdmissionFollower* admission_follower = nullptr;
  RuleFollower* rule_follower = nullptr;
  SumFollower* sum_follower = nullptr;  // null also if no round waits for sums
};

// Makes the protocols of the server that PARTS belong to. ADMIT: as for JoinQueue.
JobProtocols MakeProtocols(const ProtocolParts& parts, JoinQueue::Admit admit);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_PROTOCOLS_H_
