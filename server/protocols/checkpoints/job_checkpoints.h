// JobCheckpoints decides when a server makes checkpoints and from which one it continues
// (docs/recovery.md).
//
//   durability   mode           checkpoints                           a restarted server continues from
//   log          any            at intervals                          its newest checkpoint and its log
//   checkpoint   ssp, async     at intervals                          its newest checkpoint
//   checkpoint   sync, backup   at the steps that the lead announces  the checkpoint that the lead chooses
//   none                        none
//
// In the third row the checkpoints are aligned: all servers make them at the same step. The lead
// has a CheckpointLead and calls Follow and Rollback at the other servers.
//
// Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_JOB_CHECKPOINTS_H_
#define THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_JOB_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/trace.h"
#include "proto/control.pb.h"
#include "server/protocols/checkpoints/checkpoint_lead.h"
#include "server/protocols/checkpoints/checkpointer.h"
#include "server/protocols/checkpoints/rollback_plan.h"
#include "server/protocols/checkpoints/save_requests.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/peers.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_identity.h"
#include "server/protocols/state/membership.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"

namespace thinwire {

class JobCheckpoints final : public Protocol, private LeadServer {
 public:
  struct Options {
    std::optional<DurableOptions> durable;
    Fold fold = Fold::kRound;
    uint32_t server_count = 1;
    Tracer* tracer = nullptr;  // see JobOptions
  };
  // The parts of the job that are used. They must outlive this object. PEERS may be null except at
  // the lead of several servers.
  struct Parts {
    const JobIdentity& identity;
    bool& stopping;  // JobState::stopping, set when this server has begun to go back
    const Membership& membership;
    const ModelSlot& model;
    const StoredState& stored;
    Journal& journal;
    Clock& clock;
    Peers* peers;
    ExecutorFactory& writers;  // makes the executor that writes checkpoints
  };

  // CONTROL, the control thread, must outlive this object.
  JobCheckpoints(Options options, const Parts& parts, Executor& control)
      : options_(std::move(options)), parts_(parts), control_(control) {}

  // Begins to make checkpoints. Call after the state on disk is restored, before any other method.
  // RECOVERED: there was a state. REQUIRES: the job is durable.
  void Start(bool recovered);
  // Blocks until the current checkpoint is written or has failed. REQUIRES: the control thread is
  // stopped.
  void Finish();

  // Returns Unavailable while the servers have to agree on the checkpoint to continue from.
  absl::Status CheckAgreed() const;
  // Returns whether this server waits for the lead's choice. Constant after Start, so thread-safe.
  bool awaits_rollback() const { return awaits_rollback_; }
  // Returns whether all servers make their checkpoints at the same steps and go back together.
  bool aligned() const { return keeps_only_checkpoints() && options_.fold == Fold::kRound; }
  // Returns the newest step that this server, the lead, has announced; nullopt: none.
  std::optional<Step> announced() const;

  // At the lead of an aligned job: makes checkpoints only of the steps of later calls, instead of at
  // intervals; nullopt: none now.
  void Plan(std::optional<Step> step) { lead_->Plan(step); }
  // At the lead of an aligned job: sends all servers back to STEP under the next generation.
  // REQUIRES: every server has a checkpoint of STEP.
  void ReturnTo(Step step);
  // Returns the newest step of which every server has a checkpoint, as far as the lead knows;
  // nullopt: none yet.
  std::optional<Step> kept() const { return lead_ == nullptr ? std::nullopt : lead_->kept(); }

  // Returns whether Tick should be called soon (CheckpointLead::delays_workers).
  bool delays_workers() const { return lead_ != nullptr && lead_->delays_workers(); }
  // Starts the checkpoints that are due, and calls the other servers. Called also while the servers
  // have to agree.
  void Tick(absl::Time now) override;
  // With durability: checkpoint, saves the first values as soon as the shards have them.
  void SaveFirst();
  // Starts a last checkpoint, before the job stops.
  void SaveLast();

  // Perform the lead's requests at another server (FollowRequest, RollbackRequest).
  absl::StatusOr<FollowReply> Follow(const FollowRequest& request);
  void Rollback(const RollbackRequest& request,
                std::function<void(absl::StatusOr<RollbackReply>)> done);

  // Performs a request for a checkpoint now, of an operator at the lead or of the lead at another
  // server. LIVE: whether a worker is live. Errors: those of CheckSave and SaveRequests, with the
  // name of the server; those of the calls of the other servers.
  using SaveDone = std::function<void(absl::StatusOr<SaveCheckpointReply>)>;
  void Save(const SaveCheckpointRequest& request, bool live, const SaveDone& done);
  // At the lead: makes a checkpoint of all servers after a worker's newest test, if it is one of the
  // best (RetentionSpec::best_count).
  void Heard(const HeartbeatRequest& request) override;
  // Performs an operator's request, at the lead: all servers go back to the checkpoint of a step.
  // Errors: FailedPrecondition if the servers of this job do not go back together; those of
  // CheckpointLead::Return and of the file system.
  void Restore(const RestoreCheckpointRequest& request,
               std::function<void(absl::StatusOr<RestoreCheckpointReply>)> done);
  // Ends the requests for a checkpoint with STATUS.
  void Stop(const absl::Status& status) override;

  // Add the step of the next checkpoint, the counters of the checkpoints and the state of a
  // rollback.
  void FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) override;
  void FillIn(StatusReply& reply) const override;

 private:
  bool keeps_only_checkpoints() const {
    return options_.durable.has_value() && options_.durable->durability == Durability::kCheckpoint;
  }

  // Returns why no checkpoint can be made now. Errors: FailedPrecondition, InvalidArgument for a
  // bad request, Unavailable while the servers go back.
  absl::Status CheckSave(const SaveCheckpointRequest& request) const;
  absl::Status CheckRestore() const;
  // Performs a checked REQUEST at this server, and at all servers.
  void SaveOwn(const SaveCheckpointRequest& request, const SaveDone& done);
  void SaveEverywhere(const SaveCheckpointRequest& request, const SaveDone& done);
  // Completes a REQUEST of this server, the lead, and performs it at all servers.
  void SaveAsLead(SaveCheckpointRequest request, bool live, const SaveDone& done);
  // Checks what Follow and Rollback have in common.
  absl::Status CheckFollower(const std::string& job) const;
  absl::Status CheckRollback(const RollbackRequest& request) const;
  // Makes a checkpoint when the frontiers have reached STEP.
  void SaveAt(Step step);
  void GoBack(Step step, Generation generation, std::function<void(const absl::Status&)> done);
  ServerCheckpoints Checkpoints() const override;
  void RollBack(const RollbackOrder& order, Returned done) override;
  void Fail(const absl::Status& status) override;

  const Options options_;
  const Parts parts_;
  Executor& control_;
  std::unique_ptr<Checkpointer> checkpointer_;  // null: no checkpoints
  std::unique_ptr<SaveRequests> requests_;      // null: no checkpoints
  std::unique_ptr<CheckpointLead> lead_;        // set at the lead if aligned()
  std::optional<Step> newest_test_;             // after which a checkpoint was made
  bool awaits_rollback_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_JOB_CHECKPOINTS_H_
