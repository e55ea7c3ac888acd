// DealLead is the lead's part in dealing the examples. It tells the Dealer the progress of this
// server's shards, makes each deal durable, and adds the deals to the replies.
//
//   Update -> Dealer::Propose -> RecordDeal -> Dealer::Commit -> FillIn
//
// If the batch grows, it passes the noise of the shards to the GrowthLead; with `auto_local_steps`,
// the times of the workers to the SpeedLead.
#ifndef THINWIRE_SERVER_PROTOCOLS_DEALS_DEAL_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_DEALS_DEAL_LEAD_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/deals/growth_lead.h"
#include "server/protocols/deals/speed_lead.h"
#include "server/protocols/decision_store.h"
#include "server/protocols/membership/join_queue.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/dealer.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

class DealLead final : public Protocol {
 public:
  // GROWTH is null if the batch does not grow. The other arguments must outlive this object.
  DealLead(JobState& state, const JoinQueue& joins, const JobCheckpoints& checkpoints,
           DecisionStore& store, const ModelSlot& model, Clock& clock, Executor& control,
           std::unique_ptr<GrowthLead> growth);

  absl::Status Begin() override;
  // Learns the task of a worker that has joined.
  void AddTask(const JoinRequest& request);
  // Announces a deal if the members or their batches have changed (dealer.h).
  void Update();
  void Tick(absl::Time /*now*/) override { Update(); }
  // Drops the deals that no worker needs any more, by the epoch that the sender of REQUEST states
  // (Dealer::Drop).
  void Heard(const HeartbeatRequest& request) override;

  // Add the deals to a reply, and the batch in force, if it grows.
  void FillIn(WorkerId worker, JoinReply& reply) override;
  void FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) override;
  void FillIn(StatusReply& reply) const override;

 private:
  void StoreProgress(const HostedModel& model);
  // Passes the noise of the shards to growth_, later on the control thread.
  void MeasureNoise(const std::shared_ptr<const HostedModel>& model);

  // Passes the times of the workers to speed_, later on the control thread.
  void MeasureSpeed(const std::shared_ptr<const HostedModel>& model);

  JobState& state_;
  Dealer& dealer_;
  const JoinQueue& joins_;
  const JobCheckpoints& checkpoints_;
  DecisionStore& store_;
  const ModelSlot& model_;
  Clock& clock_;
  Executor& control_;
  const std::unique_ptr<GrowthLead> growth_;
  bool measures_ = false;           // the shards have not told their noise yet
  std::optional<SpeedLead> speed_;  // none until a worker with auto_local_steps has joined
  LogLimit deal_lines_{256, absl::Seconds(1)};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_DEALS_DEAL_LEAD_H_
