// DealLead is the lead's part in dealing the examples. It tells the Dealer the progress of this
// server's shards, makes each deal durable, and adds the deals to the replies.
//
//   Update -> Dealer::Propose -> Record -> Dealer::Commit -> FillIn
//
// If the batch grows, it passes the noise of the shards to the GrowthLead.
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_DEALS_DEAL_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_DEALS_DEAL_LEAD_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "server/protocols/deals/dealer.h"
#include "server/protocols/deals/growth_lead.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

class DealLead {
 public:
  // Makes a proposed deal durable, then calls THEN on any thread. After an error, the deal is not
  // announced.
  using Record =
      std::function<void(const Deal& deal, const std::function<void(const absl::Status&)>& then)>;

  // DEALER, MODEL, CLOCK and CONTROL, the control thread, must outlive this object.
  // RULE returns the job's newest rule. GROWTH is null if the batch does not grow.
  DealLead(Dealer& dealer, const ModelSlot& model, Clock& clock, std::function<Rule()> rule,
           Executor& control, Record record, std::unique_ptr<GrowthLead> growth);

  // Learns the task of a worker that has joined.
  void AddTask(const JoinRequest& request);
  // Announces a deal if the members have changed or the batch grows (dealer.h).
  void Update(const std::vector<WorkerId>& live, const std::vector<WorkerId>& returning);
  // Records that a new process has replaced the lost process of WORKER. If the new process begins
  // some steps later, the examples of these steps are dealt anew. REQUIRES: the job has its model.
  void Replace(WorkerId worker);
  // Returns a step that no worker begins soon (dealer.h). Errors: FailedPrecondition if this server
  // has no shards, so that it does not know the workers' steps. REQUIRES: the job has its model.
  absl::StatusOr<Step> StepAhead();

  // Add the deals to a reply. REQUIRES: the job has its model.
  void FillIn(JoinReply& reply);
  void FillIn(const HeartbeatRequest& request, HeartbeatReply& reply);
  // Drops the deals that no worker needs any more, by the epoch that the sender of REQUEST states
  // (Dealer::Drop). REQUIRES: the job has its model.
  void Drop(const HeartbeatRequest& request, Step limit, const std::vector<WorkerId>& live);
  // Adds the batch in force to a reply, if it grows.
  void FillIn(StatusReply& reply) const;

 private:
  void StoreProgress(const HostedModel& model);
  // Passes the noise of the shards to growth_, later on the control thread.
  void MeasureNoise(const std::shared_ptr<const HostedModel>& model);

  Dealer& dealer_;
  const ModelSlot& model_;
  Clock& clock_;
  const std::function<Rule()> rule_;
  Executor& control_;
  const Record record_;
  const std::unique_ptr<GrowthLead> growth_;
  bool measures_ = false;  // the shards have not answered yet
  LogLimit deal_lines_{256, absl::Seconds(1)};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_DEALS_DEAL_LEAD_H_
