// JobControl: the part of a Job that is decided in one order: who joins, who is silent, who leaves,
// when to stop.
//
// Lives on the job's control thread, except where said: Post brings work there.
#ifndef THINWIRE_SERVER_EDGE_JOB_CONTROL_H_
#define THINWIRE_SERVER_EDGE_JOB_CONTROL_H_

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/edge/counters.h"
#include "server/edge/delivery.h"
#include "server/edge/hosted_model.h"
#include "server/edge/job.h"
#include "server/edge/membership.h"
#include "server/edge/model_slot.h"
#include "server/edge/session.h"
#include "server/edge/stream_table.h"

namespace thinwire {

struct JoinCall {
  JoinRequest request;
  std::function<bool()> abandoned;
  Job::Done<JoinReply> done;
  absl::Time asked;  // set by Join

  WorkerId worker() const { return WorkerId{request.worker()}; }
};

class JobControl {
 public:
  JobControl(JobOptions options, std::unique_ptr<const Optimizer> optimizer, Schedule schedule,
             Clock& clock);
  ~JobControl();

  // As in Job.
  void Join(JoinCall call);
  void Heartbeat(const HeartbeatRequest& request, const Job::Done<HeartbeatReply>& done);
  void Leave(const LeaveRequest& request, Job::Done<LeaveReply> done);
  void Status(Job::Done<StatusReply> done);
  void Tick();
  void TickEvery(std::chrono::nanoseconds every);
  void Stop(std::function<void()> done);

  // On any thread.
  template <typename Work>
  void Post(Work work) {
    boost::asio::post(control_, std::move(work));
  }
  std::shared_ptr<const HostedModel> model() const { return model_.Get(); }
  const SessionScope& scope() const { return scope_; }

 private:
  absl::Status Admissible(const JoinRequest& request);
  bool Answered(const JoinCall& call);
  void AnswerWaitingJoins();
  void Admit(const JoinCall& call, Incarnation incarnation);
  JoinReply ReplyOf(Incarnation incarnation, const std::vector<JoinAnswer>& answers) const;
  void Hear(WorkerId worker, Incarnation incarnation);
  // THEN is called on a strand, when every shard has applied EVENT, or at once if there is no
  // shard.
  void ApplyToAll(const Event& event, std::function<void()> then);
  void OpenAfterTimeout(absl::Time now);
  void TellWaits(absl::Time now);

  const JobOptions options_;
  Clock& clock_;

  // Own synchronization.
  StreamTable streams_;
  Counters counters_;
  const Delivery delivery_{streams_, counters_};
  const SessionScope scope_;
  // Before the model, whose shards' work it may still hold when all is over.
  boost::asio::thread_pool shards_pool_;
  ModelSlot model_;

  // Of the control thread alone.
  Membership membership_;
  std::vector<JoinCall> waiting_joins_;
  std::optional<absl::Time> first_join_;
  bool timeout_over_ = false;
  absl::Time waits_told_;
  bool stopping_ = false;

  boost::asio::thread_pool control_{1};
  boost::asio::steady_timer ticker_{control_};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_JOB_CONTROL_H_
