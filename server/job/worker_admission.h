// WorkerAdmission performs the Join of worker processes, at every server: the process states the
// model, becomes a member of the job and joins the shards. At the lead, a new process first waits in
// the JoinQueue.
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_JOB_WORKER_ADMISSION_H_
#define THINWIRE_SERVER_JOB_WORKER_ADMISSION_H_

#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"
#include "server/job/job_options.h"
#include "server/job/job_protocols.h"
#include "server/job/request_checks.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/membership/join_queue.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/counters.h"
#include "server/shards/hosted_model.h"
#include "server/shards/stream/stream_table.h"

namespace thinwire {

class WorkerAdmission {
 public:
  // The parts of the server that are used. They must outlive this object.
  struct Parts {
    const JobOptions& options;
    JobState& state;
    StoredState& stored;
    JobCheckpoints& checkpoints;
    ModelSlot& model;
    Counters& counters;
    const WorkerTokens& tokens;
    StreamTable& streams;
    const JobProtocols& protocols;
    Clock& clock;
    Executor& control;
  };

  explicit WorkerAdmission(const Parts& parts) : parts_(parts) {}

  // Checks CALL, then admits its process or adds it to the queue. SERVER: see CheckJoin.
  void Join(const ServerCondition& server, const JoinCall& call);
  // Makes the process of CALL a member, and replies when all shards know it.
  void Admit(const JoinCall& call, Incarnation incarnation);

 private:
  // Defines the model by REQUEST, or compares REQUEST with it. Records a new run.
  absl::Status UseModel(const JoinRequest& request);
  // Returns the shards of this server that the process of REQUEST owns; none if it owns all.
  std::vector<ShardId> OwnedShards(const JoinRequest& request) const;
  JoinReply ReplyOf(WorkerId worker, Incarnation incarnation, const std::vector<Effects>& effects);

  const Parts parts_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_WORKER_ADMISSION_H_
