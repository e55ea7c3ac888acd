// DealLead is the lead's part in dealing the examples. It tells the Dealer the progress of this server's shards, makes
// each deal durable, and adds the deals to the replies.
//
//   Update -> Dealer::Propose -> journal -> Dealer::Commit -> FillIn
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_EDGE_LEAD_DEAL_LEAD_H_
#define THINWIRE_SERVER_EDGE_LEAD_DEAL_LEAD_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "server/edge/lead/dealer.h"
#include "server/edge/model/hosted_model.h"
#include "server/edge/model/journal.h"

namespace thinwire {

class DealLead {
 public:
  // Runs a function later, on the control thread. Thread-safe.
  using Post = std::function<void(std::function<void()>)>;

  // DEALER, MODEL, JOURNAL and CLOCK must outlive this object.
  // FOLD returns that of the job's newest mode.
  DealLead(Dealer& dealer, const ModelSlot& model, Journal& journal, Clock& clock,
           std::function<Fold()> fold, Post post);

  // Announces a deal if the members have changed (dealer.h).
  void Update(const std::vector<WorkerId>& live, const std::vector<WorkerId>& returning);
  // Records that a new process has replaced the lost process of WORKER. If the new process begins some steps later, the
  // examples of these steps are dealt anew. REQUIRES: the job has its model.
  void Replace(WorkerId worker);
  // Returns a step that no worker begins soon (dealer.h). Errors: FailedPrecondition if this server has
  // no shards, so that it does not know the workers' steps. REQUIRES: the job has its model.
  absl::StatusOr<Step> StepAhead();

  // Add the deals to a reply. REQUIRES: the job has its model.
  void FillIn(JoinReply& reply);
  void FillIn(const HeartbeatRequest& request, HeartbeatReply& reply);

 private:
  void StoreProgress(const HostedModel& model);

  Dealer& dealer_;
  const ModelSlot& model_;
  Journal& journal_;
  Clock& clock_;
  const std::function<Fold()> fold_;
  const Post post_;
  LogLimit deal_lines_{256, absl::Seconds(1)};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_LEAD_DEAL_LEAD_H_
