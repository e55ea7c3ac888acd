// Job: one server's part of a training job: who has joined, the shards that live here, and the
// streams. It knows no gRPC: the service is a thin skin over it, and tests call it as they are.
//
// The first Join brings the model and makes the shards. Membership is decided on one thread of the
// job's own, so that a heartbeat never waits behind a fold, and what follows for the shards (Join,
// Expire, Return, Open, Leave) reaches every strand in the order in which it was decided.
//
// Thread-safe. Answers come on the job's threads, or at once. REQUIRES: every session is gone
// before the job is.
#ifndef THINWIRE_SERVER_EDGE_JOB_H_
#define THINWIRE_SERVER_EDGE_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "server/core/delta_publisher.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/schedule.h"
#include "server/core/updater.h"
#include "server/edge/session.h"

namespace thinwire {

struct JobOptions {
  std::string name = "train";
  ServerId server;  // 0 leads
  uint32_t server_count = 1;
  Rule rule;
  SparseUpdateSpec sparse_updates;
  std::optional<PublishOptions> publish;  // none: workers read the masters only
  absl::Duration lease = absl::Seconds(10);
  absl::Duration start_timeout = absl::Seconds(60);
  Epoch epoch;
  Generation generation{1};
  uint32_t thread_count = 0;  // that run the shards; 0: one per core
  // Holds the shards' arrays. gRPC may read masters after the job is gone: outlives all of gRPC's
  // calls.
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();
};

class JobControl;

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

  // May take one lease (membership.h). ABANDONED says whether the caller has stopped waiting:
  // nobody is let in for it. Errors: InvalidArgument (a worker or a model there cannot be),
  // FailedPrecondition (another job or model, a fenced incarnation), AlreadyExists (the worker's
  // process lives), Unavailable (stopping).
  void Join(JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done);
  void Heartbeat(const HeartbeatRequest& request, Done<HeartbeatReply> done);
  // Done when every shard knows.
  void Leave(const LeaveRequest& request, Done<LeaveReply> done);
  void Status(Done<StatusReply> done);
  // The masters of the shard at PLACE among those of this server; nothing beyond the last. Errors:
  // FailedPrecondition before the first Join, and before the shard is seeded.
  void Masters(size_t place, Done<std::vector<MastersChunk>> done);

  // A stream was opened. REQUIRES: the session goes before the job.
  std::unique_ptr<Session> Open(StreamLink link);

  // Does what time asks for: ends leases, opens after start_timeout, answers Joins, tells who waits
  // for whom.
  void Tick(std::function<void()> done);
  // Ticks by itself from now on.
  void StartTicking(absl::Duration every);

  // Refuses Joins from now on, lets what is posted be applied, then ends every stream with
  // Unavailable.
  void Stop(std::function<void()> done);

 private:
  const std::unique_ptr<JobControl> control_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_JOB_H_
