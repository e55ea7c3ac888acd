// Job is one server's part of a training job: its members, the shards of this server, and the
// workers' streams. It does not use gRPC; services.h connects it to gRPC, and tests call it
// directly.
//
// Server 0, the lead, draws the run and assigns incarnations; the other servers belong to the run
// that the lead admits them to, and accept only the processes that it announces (admission.h).
//
// The first Join defines the model and creates the shards. One control thread of the job makes all
// membership decisions, so that a heartbeat never waits for a fold and every strand receives the
// resulting events (Join, Expire, Return, Open, Leave) in the order of the decisions.
//
//   request -> checks -> Membership -> StoredState: durable -> event at every shard -> reply
//
// JoinQueue makes new worker processes wait for their numbers, DealLead deals the examples, Scaler
// changes the number of workers and the mode, WaitTuner chooses the numbers of the mode,
// PrecisionLead chooses the push codec by trials, JobCheckpoints makes checkpoints and goes back to
// them, Clipper limits the norm of gradients.
//
// With durability: log, every event and every change of a member is in the event log before any of
// its effects leaves the server, and Recover() continues from the state that the log and the newest
// checkpoint describe. With durability: checkpoint, Recover() continues from a checkpoint alone; in
// modes sync and backup the lead chooses it, and a rollback ends with a new Job in the same process
// (docs/recovery.md).
//
// Thread-safe. Reply callbacks run on the job's threads, or on the calling thread before the call
// returns. A job that cannot write its event log any more confirms nothing: it destroys callbacks
// without calling them. REQUIRES: every session is destroyed before the job.
#ifndef THINWIRE_SERVER_JOB_JOB_H_
#define THINWIRE_SERVER_JOB_JOB_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/spec/push_spec.h"
#include "common/spec/rule.h"
#include "common/spec/schedule_spec.h"
#include "common/text/problems.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "common/time/trace.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/group_updates.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "server/job/control_executor.h"
#include "server/job/worker_tokens.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/clipping/clipper.h"
#include "server/protocols/deals/deal_lead.h"
#include "server/protocols/deals/dealer.h"
#include "server/protocols/job_identity.h"
#include "server/protocols/membership/admission.h"
#include "server/protocols/membership/job_match.h"
#include "server/protocols/membership/join_queue.h"
#include "server/protocols/membership/membership.h"
#include "server/protocols/peers.h"
#include "server/protocols/precision/precision_lead.h"
#include "server/protocols/rules/scaler.h"
#include "server/protocols/rules/wait_tuner.h"
#include "server/shards/counters.h"
#include "server/shards/frame_budget.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"
#include "server/shards/memory_plan.h"
#include "server/shards/session.h"
#include "server/shards/shard_observer.h"
#include "server/shards/stream/server_stream.h"
#include "server/shards/stream/stream_table.h"

namespace thinwire {

struct JobOptions {
  std::string name = "train";
  // The job configuration that every worker must have. nullopt: the server does not compare
  // configurations.
  std::optional<JobConfig> config;
  ServerId server;  // the number of this server; server 0 assigns incarnations
  uint32_t server_count = 1;
  Rule rule;
  // The lead changes the number of backup workers or the slack at run time (wait_tuner.h).
  bool auto_rule = false;
  std::vector<GroupSpec> groups;           // all parameter groups; none: every tensor is in group 0
  std::vector<GroupUpdate> group_updates;  // the update of each parameter group, from group 0
  SparseUpdateSpec sparse_updates;
  StalenessSpec staleness;
  std::optional<GrowthSpec> growth;       // nullopt: the batch does not grow
  std::optional<PublishOptions> publish;  // nullopt: the job publishes no deltas
  std::optional<AdaptiveSpec> adaptive;   // push: adaptive; needs durability: checkpoint
  double clip_norm = 0;  // JobSpec::clip_norm; above 0 only in mode sync without an event log
  absl::Duration lease = absl::Seconds(10);
  absl::Duration start_timeout = absl::Seconds(60);
  Epoch epoch;            // larger than those of earlier processes of this server
  RunId run{1};           // the run that server 0 begins; not 0; the other servers ignore it
  std::string token_key;  // the key of this run's tokens; "": the job makes no tokens
  Generation generation{1};
  // The memory that this process may use (memory_plan.h).
  uint64_t memory_budget_bytes = std::numeric_limits<uint64_t>::max();
  std::optional<DurableOptions> durable;  // nullopt: the state is lost with the process
  bool insecure = false;  // the server listens for other machines without credentials
  // Called when an operator drains this server: the owner of the job is to stop it and to exit.
  std::function<void()> drained = [] {};
  // Records the server's activities. HeartbeatReply.unix_micros is then the time of its clock. Must
  // outlive the job; null: no trace.
  Tracer* tracer = nullptr;
  // Allocates the shards' arrays. Must outlive all gRPC calls, because gRPC may still send
  // masters after the job is destroyed.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
  ShardObserver* observer = nullptr;  // must outlive the job; null: nobody observes the shards
};

// Make the executors of a job.
struct JobExecutors {
  ExecutorFactory& threads;     // the control thread and the log
  ExecutorFactory& background;  // the writer of checkpoints, which uses time that training leaves
  ExecutorFactory& shards;      // the strands of the shards
  Clock& unix_clock;  // counts from the Unix epoch: the time of HeartbeatReply.unix_micros
};

class Job {
 public:
  template <typename Reply>
  using Done = std::function<void(absl::StatusOr<Reply>)>;

  // CLOCK, which measures leases, and EXECUTORS must outlive the job. REQUIRES: OPTIONS have an
  // update for each group, at least for group 0; PEERS is set for server 0 of several servers.
  Job(JobOptions options, Clock& clock, const JobExecutors& executors,
      std::unique_ptr<Peers> peers = nullptr);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Continues from the state on disk, if `durable` is set and there is a state. Call before any
  // other method. Errors: DataLoss if the state is damaged; FailedPrecondition if it belongs to
  // another job or if the configuration differs; errors of the file system.
  absl::Status Recover();

  // Returns the largest number of workers that the job may have.
  uint32_t worker_count() const { return options_.rule.max_workers; }
  const MemoryPlan& memory_plan() const { return memory_plan_; }
  Epoch epoch() const { return options_.epoch; }
  const WorkerTokens& tokens() const { return tokens_; }

  // Admits a worker. The reply may be delayed by up to one lease (membership.h), and at server 0 by
  // up to Admission::kPatience. If ABANDONED returns true, the worker is not admitted, because its
  // caller no longer waits. MAY_REJOIN returns OK if the caller may act as the incarnation in
  // REQUEST; it is called for requests of this run that state one. Errors: those of MAY_REJOIN;
  // InvalidArgument for an invalid worker number or model; FailedPrecondition if the run, the job
  // or the model differs, if the incarnation is fenced, or if a server lost its state; NotFound if
  // the incarnation is not assigned; AlreadyExists if another process of the worker is alive;
  // Unavailable while the job is stopping or server 0 cannot reach another server.
  void Join(
      JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done,
      std::function<absl::Status()> may_rejoin = [] { return absl::OkStatus(); });
  // Admits this server to the run of the lead, and announces a worker process. Errors:
  // InvalidArgument for invalid numbers; FailedPrecondition if this server has the state of another
  // run or has another epoch; Unavailable while the job is stopping.
  void Admit(AdmitRequest request, Done<AdmitReply> done);
  // Returns this server's checkpoints to the lead, and starts the checkpoint that the lead
  // announces. Errors: FailedPrecondition if the request belongs to another job or to an older
  // generation, or if the servers make no checkpoints together; Unavailable while the job is
  // stopping.
  void Follow(FollowRequest request, Done<FollowReply> done);
  // Makes the checkpoint of a step the newest one, under a higher generation. Then replies and
  // calls DurableOptions::restart. Errors: those of Follow; FailedPrecondition if the request
  // belongs to another run, if its generation is not higher, or if there is no checkpoint of its
  // step.
  void Rollback(RollbackRequest request, Done<RollbackReply> done);
  // Closes the last round and replies with this server's part of the next one (clipper.h). Errors:
  // FailedPrecondition if the request belongs to another job, run or generation, or if the job has
  // no clip_norm; Unavailable while the job is stopping.
  void Clip(ClipRequest request, Done<ClipReply> done);
  void Heartbeat(HeartbeatRequest request, Done<HeartbeatReply> done);
  // Removes a worker. Replies when every shard has applied the Leave event and, after the last
  // worker, when no round waits for its norm.
  void Leave(LeaveRequest request, Done<LeaveReply> done);
  // Changes the number of workers (scaler.h). Errors: those of Scaler; FailedPrecondition for
  // another job or before the first Join.
  void Scale(ScaleRequest request, Done<ScaleReply> done);
  // Changes the mode (scaler.h), at the lead. At another server, applies the rule of the lead, which
  // states its run. Errors: as for Scale; FailedPrecondition for another run or an old change.
  void SetMode(SetModeRequest request, Done<SetModeReply> done);
  // With `worker`, tells the worker's process to leave. Without it, calls JobOptions::drained after
  // the reply. Errors: FailedPrecondition for another job or a worker that is not live;
  // InvalidArgument for an invalid worker number, or with `worker` at another server than the lead;
  // Unavailable while the job is stopping.
  void Drain(DrainRequest request, Done<DrainReply> done);
  // Makes a checkpoint of all servers now, at the lead. The reply comes when they are on disk. At
  // another server, makes its checkpoint for the lead, which states its run. Errors: those of
  // JobCheckpoints::Save; InvalidArgument for an operator's request at another server; Unavailable
  // while the job is stopping.
  void SaveCheckpoint(SaveCheckpointRequest request, Done<SaveCheckpointReply> done);
  // Sends all servers back to the checkpoint of a step, at the lead. Errors: those of
  // JobCheckpoints::Restore; FailedPrecondition for another job; InvalidArgument at another server;
  // Unavailable while the job is stopping.
  void RestoreCheckpoint(RestoreCheckpointRequest request, Done<RestoreCheckpointReply> done);
  void Status(Done<StatusReply> done);
  // Replies with the masters, or the averages if REQUEST asks for them, of the shard at position
  // INDEX among this server's shards, or with no chunks if INDEX is past the last shard. Errors:
  // FailedPrecondition before the first Join or before the shard is seeded.
  void Masters(const MastersRequest& request, size_t index, Done<std::vector<MastersChunk>> done);

  // Returns a session for a new stream. REQUIRES: the session is destroyed before the job.
  std::unique_ptr<Session> Open(StreamLink link);

  // Performs all actions that depend on time: expires leases, opens shards after start_timeout,
  // answers waiting Joins, and tells workers why their reads wait. Then calls DONE.
  void Tick(std::function<void()> done);
  // Calls Tick at intervals of EVERY from now on.
  void StartTicking(absl::Duration every);

  // Refuses Joins from now on. When all posted work is finished, saves a last checkpoint if the job
  // is durable and no shard waits for a gradient, ends every stream with Unavailable, and calls
  // DONE. Returns without waiting.
  void Stop(std::function<void()> done);

 private:
  // All private methods run on the control thread.

  void HandleJoin(const JoinCall& call);
  absl::Status CheckJoin(const JoinCall& call);
  absl::Status CheckRun(const JoinRequest& request) const;
  void AdmitWorker(const JoinCall& call, Incarnation incarnation);
  JoinReply ReplyOf(WorkerId worker, Incarnation incarnation, const std::vector<Effects>& effects);

  void HandleAdmit(const AdmitRequest& request, const Done<AdmitReply>& done);
  absl::Status CheckAdmit(const AdmitRequest& request) const;
  absl::Status CheckClip(const ClipRequest& request) const;
  absl::StatusOr<HeartbeatReply> HandleHeartbeat(const HeartbeatRequest& request);
  // Records that the worker was asked to stop, and tells it the step if all live workers were.
  void StopWorker(const HeartbeatRequest& request, HeartbeatReply& reply);
  void DropDeals(const HeartbeatRequest& request);
  void HandleLeave(const LeaveRequest& request, const Done<LeaveReply>& done);
  absl::Status CheckLeave(const LeaveRequest& request) const;
  void HandleScale(const ScaleRequest& request, const Done<ScaleReply>& done);
  void HandleSetMode(const SetModeRequest& request, const Done<SetModeReply>& done);
  absl::Status CheckSetMode(const SetModeRequest& request) const;
  // Returns an error if an operator's request to change the rule of JOB cannot be performed now.
  absl::Status CheckRuleChange(const std::string& job) const;
  // Returns OK if the job may have the mode of RULE. Errors: InvalidArgument.
  absl::Status CheckMode(const Rule& rule) const;
  // Returns the settings of the job with which training may diverge in the mode of CONSISTENCY.
  Problems ModeWarnings(const Consistency& consistency) const;
  void HandleDrain(const DrainRequest& request, const Done<DrainReply>& done);
  void HandleTick();
  void HandleStop(std::function<void()> done);

  // Continues with the members of the restored state.
  void ContinueMembers();
  // Training begins as at the start of the job: it waits for all workers, or for start_timeout
  // after the first Join.
  void BeginAgain();
  // Renews the lease of a worker's process, from which a message has arrived.
  void RenewLease(WorkerId worker, Incarnation incarnation);
  // Extends all leases by the time for which this process was suspended.
  void ExcusePause(absl::Duration pause);
  // Submits EVENT to every shard and calls THEN when all have applied it, on a strand. If the
  // server has no shard, calls THEN at once.
  void ApplyToAll(const Event& event, std::function<void()> then);
  // At the lead: deals the examples anew if the members have changed.
  void DealExamples();
  // At the lead of a job with auto_rule: measures the workers' steps, and changes the rule if it is
  // due.
  void TuneRule();
  // At the lead of a job with push: adaptive: sends all processes back to a snapshot if it is due.
  void AdaptPrecision();
  void OpenAfterTimeout(absl::Time now);
  void SendWaitNotices(absl::Time now);
  void RemindServers(absl::Time now);

  bool leads() const { return identity_.leads(); }
  bool stopping() const { return stopping_ || checkpoints_.goes_back(); }

  const JobOptions options_;
  Clock& clock_;
  Clock& unix_clock_;

  const MemoryPlan memory_plan_;
  // Thread-safe objects. frames_ is first, because records of the journal hold frames.
  FrameBudget frames_;
  WorkerTokens tokens_;
  StreamTable streams_;
  Counters counters_;
  Journal journal_;
  const SessionScope scope_;
  ModelSlot model_;

  // Only the control thread uses the members from identity_ to checkpoints_, except control_.
  JobIdentity identity_;
  bool recovered_ = false;  // the state is that of an earlier process
  Membership membership_;
  JobMatch job_match_;
  StoredState stored_;
  // Of the lines about single workers, which can join and leave at any rate.
  LogLimit worker_lines_{256, absl::Seconds(1)};
  std::optional<absl::Time> first_join_;
  bool had_begun_ = false;  // a process that had trained before a rollback has come back
  bool start_timed_out_ = false;
  absl::Time last_wait_notices_;
  absl::Time last_reminder_;
  std::optional<absl::Time> disagreed_since_;  // set while CheckAgreed() returns an error
  bool stopping_ = false;

  ControlExecutor control_;

  Admission admission_;
  Dealer dealer_;  // only the lead uses it
  DealLead deal_lead_;
  std::unique_ptr<PrecisionLead> precision_;  // set at the lead of a job with push: adaptive
  JoinQueue joins_;                           // only the lead uses it
  Scaler scaler_;
  WaitTuner tuner_;
  JobCheckpoints checkpoints_;
  std::unique_ptr<Clipper> clipper_;  // null: the job has no clip_norm
  // Declared last, so that no call ends after the members that its callback uses.
  const std::unique_ptr<Peers> peers_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_H_
