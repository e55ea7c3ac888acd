// Server is one server process of a simulated cluster: real shards, membership, Clipper, Scaler, log
// records and checkpoints, on simulated files that outlive the process. It has no thread: the caller
// passes it messages and the time.
//
//   durability   an event is applied                     a new process
//   none         when it arrives                         does not exist
//   checkpoint   when it arrives                         by round: awaits the rollback that the lead
//                                                        orders; by push: goes on alone under the
//                                                        next generation
//   log          when its record is durable              replays the log
//
// docs/recovery.md describes the recovery. Not thread-safe.
#ifndef THINWIRE_TESTS_SIMULATION_SERVER_H_
#define THINWIRE_TESTS_SIMULATION_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/time/virtual_time.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "server/core/shard.h"
#include "server/core/testing/random_events.h"
#include "server/durable/checkpoint_format.h"
#include "server/durable/log_record.h"
#include "server/durable/testing/faulty_files.h"
#include "server/edge/clipper.h"
#include "server/edge/job_identity.h"
#include "server/edge/lead/peers.h"
#include "server/edge/lead/rollback_plan.h"
#include "server/edge/lead/scaler.h"
#include "server/edge/membership.h"
#include "server/edge/model/counters.h"
#include "tests/simulation/job.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/log_writer.h"
#include "tests/simulation/network.h"

namespace thinwire::simulation {

class Server {
 public:
  // The objects that outlive the server's processes. They must outlive this object.
  struct Shared {
    const Job& job;
    SeededRandom& random;
    FaultyFiles& files;
    std::vector<ShardLedger>& ledgers;  // indexed by shard number
    std::function<void(ToWorker)> send;
    // Calls Admit at another server. Returns Unavailable if it cannot be reached.
    std::function<absl::StatusOr<Epoch>(ServerId, RunId, Epoch known, const JoinRequest&)> admit;
    std::function<void(const std::string&)>
        trace;  // called with one line per event; null: no trace
  };

  // PEERS is null except at the lead.
  Server(const Shared& shared, ServerId id, Epoch epoch, RunId new_run,
         std::unique_ptr<Peers> peers);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Continues from the files. ROLLED_BACK: this process follows a rollback of the same server, and
  // thus awaits none. Errors: those of the file system; DataLoss if the files are damaged.
  absl::Status Start(uint64_t now, bool rolled_back = false);

  // The lead asks this server to belong to RUN, in which JOIN is a Join. KNOWN: the epoch with
  // which the lead has admitted the server; 0: not yet. Returns the epoch. Errors:
  // FailedPrecondition if the server lost its state; Unavailable if the lead must ask again.
  absl::StatusOr<Epoch> Admit(RunId run, Epoch known, const JoinRequest& join);

  // Performs the lead's call (Job::Clip). Errors: Unavailable, FailedPrecondition.
  void Clip(const ClipRequest& request, Peers::ClipDone done);
  // At the lead, changes the mode (Scaler::SetMode). At another server, performs the lead's call.
  void SetMode(const SetModeRequest& request, const Scaler::SetModeDone& done);

  // The functions below return an error if the process ends because it cannot write its files.

  absl::Status Receive(uint64_t now, const ToServer& message);
  absl::Status Tick(uint64_t now);
  // Replaces the checkpoint of STEP by one of GENERATION, which must be above the server's
  // generation, and removes the newer checkpoints. The caller then starts the server again.
  absl::Status RollBack(Generation generation, Step step);
  // Saves all shards as soon as their frontiers reach STEP, or, if STEP is nullopt, as soon as each
  // can be saved.
  absl::Status Checkpoint(std::optional<Step> step);

  // Tells the lead that all servers continue from the same checkpoint. Until then it changes no rule.
  void Settle() { settled_ = true; }
  // Keeps the checkpoint of STEP, of which every server has one, until the next call.
  void Keep(Step step) { kept_steps_ = {step}; }

  // Lets the lease of WORKER run out at SHARD alone, until the worker's next message. Returns false
  // if the worker is not live.
  bool ExpireAt(ShardId shard, WorkerId worker);

  ServerId id() const { return identity_.server; }
  // Returns the state that the server reports to the lead (FollowReply of proto/control.proto).
  ServerCheckpoints checkpoints() const;
  // Returns the largest frontier of the shards.
  Step frontier() const;
  // Returns whether a checkpoint is not complete yet.
  bool saving() const { return !unsaved_.empty() || !saved_.empty(); }
  // Returns whether the server has completed a checkpoint since it has its state.
  bool has_checkpoint() const { return has_checkpoint_; }
  // Returns whether no worker is live, and every record is durable.
  bool at_rest() const;
  // Returns whether a shard has a full round, which waits for its norm.
  bool waits_for_norm() const;
  std::string Describe() const;
  // Returns the shard, or null if another server has it.
  const Shard* shard(ShardId id) const;
  void set_checkpoint_step(std::optional<Step> step) { announced_step_ = step; }

 private:
  struct Held {
    std::unique_ptr<Shard> shard;
    LogSequence applied = 0;  // the newest record that the shard contains
  };
  struct JoinCall {
    JoinRequest request;
    ProcessId process;
    uint64_t call;
    uint64_t arrival;
  };
  // The answers of the shards to one Join.
  struct Gather {
    JoinReply reply;
    size_t missing;
  };

  bool leads() const { return identity_.leads(); }
  // Returns a step that is a few steps after the newest one at this server.
  Step StepAhead() const;
  absl::Status Recover();
  absl::Status ReplayRecords(LogSequence first);
  absl::StatusOr<uint64_t> LogBytes() const;
  absl::Status Restore(const thinwire::Checkpoint& checkpoint);
  // See thinwire::Job.
  bool StoresRule() const;
  absl::Status StoreRule(const SetModeRequest& request);
  absl::Status RestoreRule();
  void RemindServers();
  absl::Status Replay(LogSequence sequence, const ByteChain& bytes);
  absl::Status ContinueAlone();
  void JoinMembersAgain();
  std::unique_ptr<Shard> NewShard() const;

  void ReceiveFrame(const ToServer& message, const ByteChain& bytes);
  void HandleJoin(const JoinCall& call);
  void BelongTo(RunId run, const JoinRequest& join);
  absl::Status AdmitServers(const JoinRequest& join);
  bool TryAssign(const JoinCall& call);
  void AdmitWorker(const JoinCall& call, Incarnation incarnation);
  void HandleHeartbeat(const ToServer& message, const HeartbeatRequest& request);
  void HandleLeave(const ToServer& message, const LeaveRequest& request);
  void RenewLease(WorkerId worker, Incarnation incarnation);
  void Reply(ProcessId process, uint64_t call, decltype(ToWorker::body) body) const;

  // Appends RECORD to the log. Calls DONE when it is durable, at once without a log.
  void Append(const LogRecord& record, std::function<void(LogSequence)> done);
  void Submit(ShardId shard, const Event& event, std::function<void(const Effects&)> done);
  // Submits EVENT to every shard, then calls THEN when all have applied it.
  void SubmitToAll(
      const Event& event, const std::function<void()>& then = [] {});
  Effects Apply(ShardId shard, const Event& event, LogSequence sequence);
  void SendFrame(WorkerId worker, Incarnation incarnation, ServerFrame frame) const;
  ServerFrame AnswerOf(ShardId shard, const ReadAnswer& answer);
  void SendUnwritten();
  void SendWaitNotices();
  void RunPosted();
  absl::Status Commit(uint64_t now);
  void SaveIfPossible(ShardId shard);
  absl::Status WriteIfSaved();
  absl::Status ReadSteps();
  thinwire::Checkpoint CheckpointHead() const;
  MemberRecord MemberRecordOf(WorkerId worker) const;
  void Trace(const std::string& text) const;

  const Shared shared_;
  JobIdentity identity_;
  const RunId new_run_;  // the run that a lead without a run draws
  bool awaits_rollback_ = false;
  bool settled_ = true;  // at the lead: see Settle
  bool has_checkpoint_ = false;
  uint64_t now_ = 0;
  uint64_t last_run_ = 0;
  std::optional<uint64_t> first_join_;
  bool start_timed_out_ = false;
  Membership membership_;
  std::optional<BeginRecord> run_record_;
  bool run_is_durable_ = false;
  std::vector<Epoch> admitted_;  // at the lead: the epoch of each admitted server
  std::map<ShardId, Held> shards_;
  std::map<std::pair<WorkerId, Incarnation>, ProcessId> streams_;
  std::vector<JoinCall> waiting_joins_;
  std::vector<std::pair<ShardId, ReadAnswer>> unwritten_;  // answers to write at the next tick
  std::set<std::pair<ShardId, WorkerId>> expired_alone_;   // leases that ran out at one shard alone
  std::unique_ptr<LogWriter> log_;                         // null: no log
  uint64_t flush_at_ = 0;               // the tick at which the written records are flushed
  std::optional<Step> announced_step_;  // at the lead: the step of the next common checkpoint
  std::vector<Step> kept_steps_;
  std::optional<Step> save_at_;
  std::vector<ShardId> unsaved_;   // shards that the current checkpoint still lacks
  std::vector<SavedShard> saved_;  // shards of a checkpoint that is not written yet
  uint64_t write_again_at_ = 0;    // after a full disk
  std::vector<Step> steps_;        // of the complete aligned checkpoints, ascending
  // Work of the control thread for the next tick.
  VirtualTime posted_;
  const std::unique_ptr<Executor> control_ = posted_.Make();
  absl::Status store_error_;  // of StoreRule; the process ends
  Counters counters_;
  std::unique_ptr<Clipper> clipper_;  // null: the job has no clip_norm
  Scaler scaler_;
  // Declared last, so that no call ends after the members that its callback uses.
  const std::unique_ptr<Peers> peers_;
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_SERVER_H_
