// CheckpointLead is the lead's part in checkpoints that all servers make at the same step, in modes
// sync and backup with durability: checkpoint (docs/recovery.md).
//
//   Tick -> Follow at every other server -> their checkpoints and generations -> PlanRollback
//   Tick -> the step of the next checkpoint, a few seconds ahead of the frontier -> Follow
//   Tick -> the newest step of which every server has a checkpoint, which they keep -> Follow
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_EDGE_LEAD_CHECKPOINT_LEAD_H_
#define THINWIRE_SERVER_EDGE_LEAD_CHECKPOINT_LEAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/edge/lead/peers.h"
#include "server/edge/lead/rollback_plan.h"

namespace thinwire {

class CheckpointLead {
 public:
  // The lead's own server. The functions are called within Tick or on the thread of Post.
  struct Server {
    std::function<ServerCheckpoints()> checkpoints;       // returns its state
    std::function<void(const RollbackOrder&)> roll_back;  // goes back; called at most once
    std::function<void(const absl::Status&)> fail;        // the job cannot go on; called once
  };
  // Runs a function later, on the thread that uses the CheckpointLead. Thread-safe.
  using Post = std::function<void(std::function<void()>)>;

  // PEERS, which may be null in a job with one server, must outlive this object. SETTLED: whether
  // all servers are known to be in the same generation, as at the begin of a run.
  CheckpointLead(std::string job, uint32_t server_count, Peers* peers, Post post, Server server,
                 bool settled);

  // Calls the other servers and announces the next step, if it is time. The caller makes its own
  // checkpoint at announced(), and keeps that of kept(). INTERVAL is the time between two
  // checkpoints.
  void Tick(absl::Time now, absl::Duration interval);

  // From now on announces STEP instead of steps at intervals; nullopt: none.
  void Plan(std::optional<Step> step) {
    plans_ = true;
    planned_ = step;
  }
  // Returns the newest announced step; nullopt: none yet.
  std::optional<Step> announced() const { return announced_; }
  // Returns the newest step of which every server has a checkpoint, as far as the lead knows;
  // nullopt: none yet.
  std::optional<Step> kept() const { return kept_; }
  // Returns whether all servers are in the lead's generation and none awaits a rollback, as far as
  // the lead knows.
  bool settled() const { return settled_; }

 private:
  void Ask();
  void OnReply(size_t server, const absl::StatusOr<FollowReply>& reply);
  void Decide();
  void Order(const RollbackOrder& order);
  void Announce(absl::Time now, absl::Duration interval);
  void AnnouncePlanned();
  // Returns whether every server has a checkpoint of the announced step or of a later one.
  bool AllHaveAnnounced() const;
  void Fail(const absl::Status& status);

  const std::string job_;
  Peers* const peers_;
  const Post post_;
  const Server server_;

  // The replies of the current round of Follow calls; nullopt: no answer.
  std::vector<std::optional<ServerCheckpoints>> servers_;
  size_t pending_count_ = 0;  // calls of Follow or Rollback without a reply
  absl::Time last_ask_ = absl::InfinitePast();
  bool ask_now_ = true;
  bool settled_;
  bool all_answered_ = false;  // all servers have answered in the same round of calls at least once
  bool ended_ = false;         // the lead goes back, or the job has failed

  bool plans_ = false;  // Plan was called
  std::optional<Step> planned_;
  std::optional<Step> announced_;
  std::optional<Step> kept_;
  std::optional<absl::Time> last_announcement_;
  // The progress of the largest frontier of all servers. The lead may have no shard.
  Step frontier_;
  absl::Time measured_at_ = absl::InfinitePast();
  Step measured_;
  double steps_per_second_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_LEAD_CHECKPOINT_LEAD_H_
