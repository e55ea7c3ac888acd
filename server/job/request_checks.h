// The checks of the requests of Control: a request and the state of the server in, a status out. A
// job performs a request only if its check returns OK. Pure functions.
//
//   requests                            are refused
//   Join, Leave, Scale, SetMode, ...    of another job
//   Join, Leave, Admit, SetMode, Clip   of another run
//   Scale, Restore, ...                 of an operator, at another server than the lead
//   Admit, Clip, SetMode of the lead    at the lead
//   all except Heartbeat and Status     while the servers have to agree on a checkpoint, or the job
//                                       stops
//
// Protocols with state of their own check it themselves: job_checkpoints.h, rule_lead.h.
#ifndef THINWIRE_SERVER_JOB_REQUEST_CHECKS_H_
#define THINWIRE_SERVER_JOB_REQUEST_CHECKS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/control.pb.h"
#include "server/protocols/job_state.h"

namespace thinwire {

// What the checks know of the server.
struct ServerCondition {
  const JobState& state;
  absl::Status agreed;     // Unavailable while the servers have to agree on a checkpoint
  bool has_model = false;  // a worker has joined
  bool clips = false;      // the job has a clip_norm
};

// Returns the error of a request that arrives while the job stops.
absl::Status Stopping();

// MAY_REJOIN returns OK if the caller may act as the incarnation in REQUEST; it is called for
// requests of this run that state one.
absl::Status CheckJoin(const ServerCondition& server, const JoinRequest& request,
                       absl::FunctionRef<absl::Status()> may_rejoin);

absl::Status Check(const ServerCondition& server, const AdmitRequest& request);
absl::Status Check(const ServerCondition& server, const FollowRequest& request);
absl::Status Check(const ServerCondition& server, const RollbackRequest& request);
absl::Status Check(const ServerCondition& server, const ClipRequest& request);
absl::Status Check(const ServerCondition& server, const HeartbeatRequest& request);
absl::Status Check(const ServerCondition& server, const LeaveRequest& request);
absl::Status Check(const ServerCondition& server, const ScaleRequest& request);
absl::Status Check(const ServerCondition& server, const SetModeRequest& request);
absl::Status Check(const ServerCondition& server, const DrainRequest& request);
absl::Status Check(const ServerCondition& server, const SaveCheckpointRequest& request);
absl::Status Check(const ServerCondition& server, const RestoreCheckpointRequest& request);
absl::Status Check(const ServerCondition& server, const StatusRequest& request);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_REQUEST_CHECKS_H_
