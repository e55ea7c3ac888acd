// MembershipLead decides about the worker processes, at the lead: whether training begins again,
// which worker evaluates, and which processes must leave. It also gives them their tokens.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_MEMBERSHIP_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_MEMBERSHIP_LEAD_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/protocols/decision_store.h"
#include "server/protocols/membership/training_start.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class MembershipLead final : public Protocol {
 public:
  // The arguments must outlive this object.
  MembershipLead(JobState& state, TrainingStart& start, const WorkerTokens& tokens,
                 const ServerShards& shards, DecisionStore& store)
      : state_(state), start_(start), tokens_(tokens), shards_(shards), store_(store) {}

  // Tells the process of a worker to leave. Errors: FailedPrecondition if the worker is not live;
  // those of the file system.
  void Drain(WorkerId worker, const std::function<void(absl::StatusOr<DrainReply>)>& done);

  void Tick(absl::Time now) override;
  void FillIn(WorkerId worker, JoinReply& reply) override;
  void FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) override;

 private:
  // Records that the worker was asked to stop, and tells it the step if all live workers were.
  void StopWorker(const HeartbeatRequest& request, HeartbeatReply& reply);

  JobState& state_;
  TrainingStart& start_;
  const WorkerTokens& tokens_;
  const ServerShards& shards_;
  DecisionStore& store_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_MEMBERSHIP_LEAD_H_
