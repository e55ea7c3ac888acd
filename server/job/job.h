// Job is one server's part of a training job: its members, the shards of this server, and the
// workers' streams. It does not use gRPC; services.h connects it to gRPC, and tests call it
// directly.
//
// Server 0, the lead, draws the run and assigns incarnations; the other servers belong to the run
// that the lead admits them to, and accept only the processes that it announces.
//
// A Job passes requests on and decides little itself. Its control thread checks each request
// (request_checks.h) and performs it or gives it to the protocol that it belongs to
// (job_protocols.h), so that a heartbeat never waits for a fold and every strand receives the
// events (Join, Expire, Return, Open, Leave) in the order of the decisions.
//
//   request -> Check -> protocol -> StoredState: durable -> event at every shard -> reply
//
// The first Join defines the model and creates the shards.
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
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "proto/control.pb.h"
#include "proto/control_rpc.h"
#include "server/job/control_executor.h"
#include "server/job/job_options.h"
#include "server/job/job_protocols.h"
#include "server/job/request_checks.h"
#include "server/job/worker_admission.h"
#include "server/protocols/checkpoints/job_checkpoints.h"
#include "server/protocols/checkpoints/stored_state.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/protocols/peers.h"
#include "server/protocols/state/job_state.h"
#include "server/shards/counters.h"
#include "server/shards/frame_budget.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"
#include "server/shards/memory_plan.h"
#include "server/shards/session.h"
#include "server/shards/stream/server_stream.h"
#include "server/shards/stream/stream_table.h"

namespace thinwire {

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
  MemoryPlan memory_plan() const {
    return {.budget_bytes = options_.memory_budget_bytes, .worker_count = options_.rule.workers};
  }
  Epoch epoch() const { return options_.epoch; }
  const WorkerTokens& tokens() const { return tokens_; }

  // Admits a worker. The reply may be delayed by up to one lease (membership.h), and at server 0 by
  // up to AdmissionLead::kPatience. If ABANDONED returns true, the worker is not admitted, because
  // its caller no longer waits. MAY_REJOIN returns OK if the caller may act as the incarnation in
  // REQUEST; it is called for requests of this run that state one. Errors: those of MAY_REJOIN;
  // InvalidArgument for an invalid worker number or model; FailedPrecondition if the run, the job
  // or the model differs, if the incarnation is fenced, or if a server lost its state; NotFound if
  // the incarnation is not assigned; AlreadyExists if another process of the worker is alive;
  // Unavailable while the job is stopping or server 0 cannot reach another server.
  void Join(
      JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done,
      std::function<absl::Status()> may_rejoin = [] { return absl::OkStatus(); });

  // Performs the other requests of Control, in the order of the calls:
  //
  //   Admit               admits this server to the run of the lead, and announces a worker process
  //   Follow              replies with this server's checkpoints, starts the one that is announced
  //   Rollback            makes the checkpoint of a step the newest one, under a higher generation;
  //                       then replies and calls DurableOptions::restart
  //   Sum                 closes the last round, replies with this server's part of the next one
  //   ClaimNumber         reserves a worker number for a new process
  //   Heartbeat           renews a worker's lease and tells it the decisions of the lead
  //   Leave               removes a worker; replies when every shard has applied the event and,
  //                       after the last worker, when no round waits for its norm
  //   Scale, SetMode      change the rule (rule_lead.h, rule_follower.h)
  //   Drain               tells a worker's process to leave; without a worker, calls
  //                       JobOptions::drained after the reply
  //   SaveCheckpoint      makes a checkpoint now: of all servers, or for the lead
  //   RestoreCheckpoint   sends all servers back to the checkpoint of a step
  //   Status              replies with the state of the server
  //
  // Errors: those of Check and of the protocol.
  template <typename Request>
  void Call(Request request, Done<ReplyTo<Request>> done) {
    control_.Post([this, request = std::move(request), done = std::move(done)] {
      if (const absl::Status status = Check(Condition(), request); !status.ok()) {
        return done(status);
      }
      Handle(request, done);
    });
  }
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

  ServerCondition Condition() const;
  // Perform requests that Check allows: the requests of one protocol, and those of several.
  void Handle(const AdmitRequest& request, const Done<AdmitReply>& done) {
    protocols_.admission_follower->Admit(request, done);
  }
  void Handle(const FollowRequest& request, const Done<FollowReply>& done) {
    done(checkpoints_.Follow(request));
  }
  void Handle(const RollbackRequest& request, const Done<RollbackReply>& done) {
    checkpoints_.Rollback(request, done);
  }
  void Handle(const RestoreCheckpointRequest& request, const Done<RestoreCheckpointReply>& done) {
    checkpoints_.Restore(request, done);
  }
  void Handle(const SumRequest& request, const Done<SumReply>& done) {
    protocols_.sum_follower->Sum(request, done);
  }
  void Handle(const ClaimNumberRequest& request, const Done<ClaimNumberReply>& done) {
    done(protocols_.numbers->Claim(request, clock_.Now()));
  }
  void Handle(const ScaleRequest& request, const Done<ScaleReply>& done) {
    protocols_.rules->Scale(request.workers(), done);
  }
  void Handle(const SetModeRequest& request, const Done<SetModeReply>& done);
  void Handle(const SaveCheckpointRequest& request, const Done<SaveCheckpointReply>& done);
  void Handle(const DrainRequest& request, const Done<DrainReply>& done);
  void Handle(const HeartbeatRequest& request, const Done<HeartbeatReply>& done);
  void Handle(const LeaveRequest& request, const Done<LeaveReply>& done);
  void Handle(const StatusRequest& request, const Done<StatusReply>& done);
  void HandleTick();
  // Calls HandleTick soon if workers wait until the servers have agreed.
  void HastenTick();
  void HandleStop(std::function<void()> done);

  // Renews the lease of a worker's process, from which a message has arrived.
  void RenewLease(const Sender& sender);
  // Answers the processes that wait for their numbers, after a change of the membership.
  void AnswerJoins();

  const JobOptions options_;
  Clock& clock_;
  Clock& unix_clock_;

  // Thread-safe objects. frames_ is first, because records of the journal hold frames.
  FrameBudget frames_;
  WorkerTokens tokens_;
  StreamTable streams_;
  Counters counters_;
  Journal journal_;
  ModelSlot model_;
  const SessionScope scope_;

  // Only the control thread uses the members below, except control_.
  JobState state_;
  absl::Time last_wait_notices_;
  bool hastens_tick_ = false;  // a call of HastenTick is pending
  ControlExecutor control_;
  StoredState stored_;
  JobCheckpoints checkpoints_;
  JobProtocols protocols_;
  WorkerAdmission admission_;
  // Declared last, so that no call ends after the members that its callback uses.
  const std::unique_ptr<Peers> peers_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_JOB_JOB_H_
