// CheckpointLead is the lead's part in checkpoints that all servers make at the same step, in modes
// sync and backup with durability: checkpoint (docs/recovery.md).
//
//   Tick -> Follow at every other server -> their checkpoints and generations -> PlanRollback
//   Tick -> the step of the next checkpoint, a few seconds ahead of the frontier -> Follow
//   Tick -> the newest step of which every server has a checkpoint, which they keep -> Follow
//   Return -> Follow, with the wanted step -> all servers have it and keep it -> the lead goes
//             back, and PlanRollback lets the others follow it
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_CHECKPOINT_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_CHECKPOINT_LEAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/recovery_spec.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/checkpoints/rollback_plan.h"
#include "server/protocols/peers.h"

namespace thinwire {

// The lead's own server.
class LeadServer {
 public:
  // Gets OK when the lead has gone back on disk.
  using Returned = std::function<void(const absl::Status&)>;

  virtual ~LeadServer() = default;
  virtual ServerCheckpoints Checkpoints() const = 0;
  // Goes back, then calls DONE. Called at most once.
  virtual void RollBack(const RollbackOrder& order, Returned done) = 0;
  // The job cannot go on. Called at most once.
  virtual void Fail(const absl::Status& status) = 0;
};

class CheckpointLead {
 public:
  using Returned = LeadServer::Returned;

  // PEERS, which may be null in a job with one server, CONTROL, the control thread, and SERVER must
  // outlive this object. SETTLED: whether all servers are known to be in the same generation, as at the
  // begin of a run. RETENTION: which checkpoints all servers keep, beside the newest ones.
  CheckpointLead(std::string job, uint32_t server_count, Peers* peers, Executor& control,
                 LeadServer& server, bool settled, RetentionSpec retention = RetentionSpec());

  // Calls the other servers and announces the next step, if it is time. The caller makes its own
  // checkpoint at announced(), and keeps those of kept_steps(). INTERVAL is the time between two
  // checkpoints.
  void Tick(absl::Time now, absl::Duration interval);

  // From now on announces STEP instead of steps at intervals; nullopt: none.
  void Plan(std::optional<Step> step) {
    plans_ = true;
    planned_ = step;
  }
  // Returns whether Plan was called.
  bool plans() const { return plans_; }
  // Announces a step for an operator, unless an announced step is still ahead. Returns the step.
  // LIVE: whether a worker is live. Otherwise, the step is that of the servers, which no worker
  // changes. Errors: Unavailable while a server has not answered yet, or while the servers go back.
  absl::StatusOr<Step> AnnounceNow(absl::Time now, bool live);
  // Sends all servers back to STEP for an operator, when they have confirmed that they keep their
  // checkpoints of this step. Calls DONE once. Errors: InvalidArgument with the possible steps if a
  // server has no checkpoint of STEP; Unavailable if a server does not answer, or while the servers
  // go back.
  void Return(Step step, Returned done);
  // Returns the newest announced step; nullopt: none yet.
  std::optional<Step> announced() const { return announced_; }
  // Returns the newest step of which every server has a checkpoint, as far as the lead knows;
  // nullopt: none yet.
  std::optional<Step> kept() const { return kept_; }
  // Returns the steps of which every server keeps its checkpoint. REQUIRES: kept() is set.
  std::vector<Step> kept_steps() const;
  // Returns whether all servers are in the lead's generation and none awaits a rollback, as far as
  // the lead knows.
  bool settled() const { return settled_; }
  // Returns whether workers wait for the next answers of the servers: the servers go back, or do not
  // all have the planned checkpoint, whose step the shards have reached.
  bool delays_workers() const {
    return !ended_ && (!settled_ || (plans_ && announced_ > kept_ && frontier_ >= announced_));
  }

 private:
  void Ask();
  void OnReply(size_t server, const absl::StatusOr<FollowReply>& reply);
  void Decide();
  // Performs the wanted return if all servers have confirmed it.
  void DecideReturn();
  void EndReturn(const absl::Status& status);
  void Order(const RollbackOrder& order);
  void Announce(absl::Time now, absl::Duration interval);
  // Measures the progress of the workers, for StepAhead.
  void Measure(absl::Time now);
  // Returns a step that no worker reaches before all processes know it.
  Step StepAhead() const;
  void AnnouncePlanned();
  // Returns whether every server has a checkpoint of the announced step or of a later one.
  bool AllHaveAnnounced() const;
  void Fail(const absl::Status& status);

  const std::string job_;
  Peers* const peers_;
  Executor& control_;
  LeadServer& server_;
  const RetentionSpec retention_;

  // The replies of the current round of Follow calls; nullopt: no answer.
  std::vector<std::optional<ServerCheckpoints>> servers_;
  size_t pending_count_ = 0;  // calls of Follow or Rollback without a reply
  absl::Time last_ask_ = absl::InfinitePast();
  bool ask_now_ = true;
  bool settled_;
  bool all_answered_ = false;  // all servers have answered in the same round of calls at least once
  bool ended_ = false;         // the lead goes back, or the job has failed

  // A return that an operator wants.
  struct Wanted {
    Step step;
    Returned done;
    bool asked = false;    // the present round of Follow calls began after the request
    bool is_kept = false;  // this round tells the servers to keep the checkpoint
  };
  std::optional<Wanted> wanted_;
  bool plans_ = false;  // Plan was called
  std::optional<Step> planned_;
  std::optional<Step> announced_;
  std::optional<Step> kept_;
  std::vector<Step> common_;  // the steps of which every server has a checkpoint, with kept_
  std::optional<absl::Time> last_announcement_;
  // The progress of the largest frontier of all servers. The lead may have no shard.
  Step frontier_;
  absl::Time measured_at_ = absl::InfinitePast();
  Step measured_;
  double steps_per_second_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_CHECKPOINT_LEAD_H_
