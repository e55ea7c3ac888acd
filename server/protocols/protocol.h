// A Protocol is one agreement among the lead, the other servers and the workers of a job:
//
//   X_plan        the decision, where there is one: a pure function or state machine
//   X_lead        calls the other servers and tells the workers, at server 0
//   X_follower    performs the calls of the lead, at every other server
//
// The lead and the follower are Protocols. A job calls the methods below of all its protocols
// (server/job/job_protocols.h), and passes a request to the one that it belongs to. State that
// several protocols use, or that is stored, is in JobState.
//
// Lives on the job's control executor.
#ifndef THINWIRE_SERVER_PROTOCOLS_PROTOCOL_H_
#define THINWIRE_SERVER_PROTOCOLS_PROTOCOL_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

class Protocol {
 public:
  virtual ~Protocol() = default;

  // Continues an earlier process of this server if JobState::recovered, and begins a new run
  // otherwise. Called once, in a durable job, when the state on disk is restored.
  virtual absl::Status Begin() { return absl::OkStatus(); }
  // Performs the actions that depend on time. Not called while the servers of the job have to agree
  // on the checkpoint to continue from.
  virtual void Tick(absl::Time /*now*/) {}
  // Learns the heartbeat of a worker that has joined this process of the server.
  virtual void Heard(const HeartbeatRequest& /*request*/) {}
  // Add what a worker must know to a reply. A worker joins only after the job has its model.
  virtual void FillIn(WorkerId /*worker*/, JoinReply& /*reply*/) {}
  virtual void FillIn(const HeartbeatRequest& /*request*/, HeartbeatReply& /*reply*/) {}
  virtual void FillIn(StatusReply& /*reply*/) const {}
  // Ends all waiting requests with STATUS. The job stops.
  virtual void Stop(const absl::Status& /*status*/) {}
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_PROTOCOL_H_
