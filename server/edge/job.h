// Job is one server's part of a training job: its members, the shards that live here, and the
// workers' streams. It knows no gRPC; services.h connects it to gRPC, and tests call it directly.
//
// The first Join brings the model and creates the shards. Membership is decided on one control
// thread of the job, so that a heartbeat never waits behind a fold, and so that the resulting
// events (Join, Expire, Return, Open, Leave) reach every strand in the order of the decisions.
//
// Thread-safe. Replies come on the job's threads, or before the call returns. REQUIRES: every
// session is destroyed before the job.
#ifndef THINWIRE_SERVER_EDGE_JOB_H_
#define THINWIRE_SERVER_EDGE_JOB_H_

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "server/edge/counters.h"
#include "server/edge/hosted_model.h"
#include "server/edge/job_match.h"
#include "server/edge/membership.h"
#include "server/edge/server_stream.h"
#include "server/edge/session.h"
#include "server/edge/stream_table.h"

namespace thinwire {

struct JobOptions {
  std::string name = "train";
  // The job that every worker must have; nullopt: workers are not compared.
  std::optional<JobConfig> config;
  ServerId server;  // server 0 is the lead
  uint32_t server_count = 1;
  Rule rule;
  SparseUpdateSpec sparse_updates;
  std::optional<PublishOptions> publish;  // none: workers read the masters only
  absl::Duration lease = absl::Seconds(10);
  absl::Duration start_timeout = absl::Seconds(60);
  Epoch epoch;
  Generation generation{1};
  uint32_t thread_count = 0;  // threads for the shards; 0: one per core
  // Holds the shards' arrays. Must outlive gRPC's calls, because gRPC may send masters after the
  // job is destroyed.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

class Job {
 public:
  template <typename Reply>
  using Done = std::function<void(absl::StatusOr<Reply>)>;

  // CLOCK outlives the job.
  Job(JobOptions options, std::unique_ptr<const Optimizer> optimizer, Schedule schedule,
      Clock& clock);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Admits a worker. May take one lease (membership.h). A caller for which ABANDONED returns true
  // is not admitted. Errors: InvalidArgument for an impossible worker or model, FailedPrecondition
  // for another job or model or a fenced incarnation, AlreadyExists if the worker's process is
  // alive, Unavailable while stopping.
  void Join(JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done);
  void Heartbeat(HeartbeatRequest request, Done<HeartbeatReply> done);
  // Replies when every shard has applied the Leave.
  void Leave(LeaveRequest request, Done<LeaveReply> done);
  void Status(Done<StatusReply> done);
  // Replies with the masters of this server's shard number INDEX, or with no chunks beyond the last
  // shard. Errors: FailedPrecondition before the first Join and before the shard is seeded.
  void Masters(size_t index, Done<std::vector<MastersChunk>> done);

  // Opens a session for a new stream. REQUIRES: the session is destroyed before the job.
  std::unique_ptr<Session> Open(StreamLink link);

  // Does everything that depends on time: expires leases, opens shards after start_timeout, answers
  // waiting Joins, and sends Waiting entries. Calls DONE afterwards.
  void Tick(std::function<void()> done);
  // Calls Tick from now on, with EVERY between the calls.
  void StartTicking(absl::Duration every);

  // Refuses Joins from now on, lets posted work finish, then ends every stream with Unavailable and
  // calls DONE.
  void Stop(std::function<void()> done);

 private:
  struct JoinCall {
    JoinRequest request;
    std::function<bool()> abandoned;
    Done<JoinReply> done;
    absl::Time arrival;

    WorkerId worker() const { return WorkerId{request.worker()}; }
  };

  // Runs WORK on the control thread.
  template <typename Work>
  void Post(Work work);

  // The methods below run on the control thread.
  void HandleJoin(JoinCall call);
  void HandleHeartbeat(const HeartbeatRequest& request, const Done<HeartbeatReply>& done);
  void HandleLeave(const LeaveRequest& request, const Done<LeaveReply>& done);
  void HandleStatus(const Done<StatusReply>& done);
  void HandleTick();
  void HandleStop(std::function<void()> done);

  absl::Status CheckJoin(const JoinRequest& request);
  // Replies to CALL if its worker can be admitted or must be refused now. Returns whether it
  // replied.
  bool TryAnswer(const JoinCall& call);
  void AnswerWaitingJoins();
  void Admit(const JoinCall& call, Incarnation incarnation);
  JoinReply ReplyOf(Incarnation incarnation, const std::vector<JoinAnswer>& answers) const;
  // Records a message from a worker's process.
  void RenewLease(WorkerId worker, Incarnation incarnation);
  // Calls THEN when every shard has applied EVENT (on a strand), or at once if there is no shard.
  void ApplyToAll(const Event& event, std::function<void()> then);
  void OpenAfterTimeout(absl::Time now);
  void SendWaitNotices(absl::Time now);
  void TickEvery(absl::Duration every);

  const JobOptions options_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const Schedule schedule_;
  Clock& clock_;

  // Thread-safe objects.
  StreamTable streams_;
  Counters counters_;
  const SessionScope scope_;
  // Declared before the model, because the pool may hold work of its shards until the pool is
  // destroyed.
  boost::asio::thread_pool shards_pool_;
  ModelSlot model_;

  // Used by the control thread only.
  Membership membership_;
  JobMatch job_match_;
  std::vector<JoinCall> waiting_joins_;
  std::optional<absl::Time> first_join_;
  bool start_timed_out_ = false;
  absl::Time last_wait_notices_;
  bool stopping_ = false;

  boost::asio::thread_pool control_{1};
  boost::asio::steady_timer ticker_{control_};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_JOB_H_
