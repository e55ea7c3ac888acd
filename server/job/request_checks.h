// The checks of the requests of Control: a request and the state of the server in, a status out. A
// job performs a request only if its check returns OK. Pure functions.
//
//   requests                          are refused
//   all except Heartbeat, Leave       while the job stops
//   and Status
//   Join, Admit, Sum, Leave, Scale,   while the servers have to agree on a checkpoint
//   SetMode, ClaimNumber
//   Join, Admit, Sum, SetMode of      of another job or another run
//   the lead
//   ClaimNumber; Scale, SetMode,      at another server than the lead
//   Drain of a worker,
//   SaveCheckpoint, RestoreCheckpoint
//   of operators
//
// Protocols check the state that only they know: checkpoints/job_checkpoints.h, rules/rule_lead.h.
#ifndef THINWIRE_SERVER_JOB_REQUEST_CHECKS_H_
#define THINWIRE_SERVER_JOB_REQUEST_CHECKS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/control.pb.h"
#include "server/protocols/state/job_state.h"

namespace thinwire {

// The state of the server, as far as the checks read it.
struct ServerCondition {
  const JobState& state;
  absl::Status agreed;     // Unavailable while the servers have to agree on a checkpoint
  bool has_model = false;  // a worker has joined
  bool sums = false;       // full rounds may wait for sums over shards
};

// Returns the error of a request that arrives while the job stops.
absl::Status Stopping();

// MAY_REJOIN returns OK if the caller may act as the incarnation in REQUEST; it is called for
// requests of this run that state one.
absl::Status CheckJoin(const ServerCondition& server, const JoinRequest& request,
                       absl::FunctionRef<absl::Status()> may_rejoin);

// Checks a request that has no check below: the job must not stop. The protocol checks the rest.
template <typename Request>
absl::Status Check(const ServerCondition& server, const Request& /*request*/) {
  return server.state.stopping ? Stopping() : absl::OkStatus();
}
absl::Status Check(const ServerCondition& server, const AdmitRequest& request);
absl::Status Check(const ServerCondition& server, const SumRequest& request);
absl::Status Check(const ServerCondition& server, const HeartbeatRequest& request);
absl::Status Check(const ServerCondition& server, const LeaveRequest& request);
absl::Status Check(const ServerCondition& server, const ClaimNumberRequest& request);
absl::Status Check(const ServerCondition& server, const ScaleRequest& request);
absl::Status Check(const ServerCondition& server, const SetModeRequest& request);
absl::Status Check(const ServerCondition& server, const DrainRequest& request);
absl::Status Check(const ServerCondition& server, const SaveCheckpointRequest& request);
absl::Status Check(const ServerCondition& server, const RestoreCheckpointRequest& request);
absl::Status Check(const ServerCondition& server, const StatusRequest& request);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_REQUEST_CHECKS_H_
