#include "server/protocols/membership/membership_lead.h"

#include <glog/logging.h>

#include <cstddef>
#include <optional>

namespace thinwire {

void MembershipLead::Drain(WorkerId worker,
                           const std::function<void(absl::StatusOr<DrainReply>)>& done) {
  const absl::Status retired = state_.membership.Retire(worker);
  if (!retired.ok()) return done(retired);
  LOG(INFO) << "an operator drains worker " << worker;
  store_.RecordLead([this, worker, done](const absl::Status& recorded) {
    if (recorded.ok()) return done(DrainReply());
    state_.membership.CancelRetire(worker);
    done(recorded);
  });
}

void MembershipLead::Tick(absl::Time /*now*/) {
  const size_t live_count = state_.membership.Live().size();
  if (live_count == 0 && state_.membership.awaits_return()) {
    LOG(INFO) << "no earlier worker process has come back: training waits for all workers";
    start_.BeginAgain();
  }
  if (live_count >= state_.rule.target() || start_.timed_out()) state_.begins_again = false;
}

void MembershipLead::FillIn(WorkerId worker, JoinReply& reply) {
  reply.set_token(tokens_.Of(worker, Incarnation{reply.incarnation()}));
}

void MembershipLead::FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) {
  if (!shards_.has_model()) return;
  if (request.asks_evaluator()) {
    const std::optional<WorkerId> evaluator = state_.membership.AppointEvaluator();
    if (evaluator.has_value()) reply.set_evaluator(evaluator->value);
  }
  if (request.has_stops_before()) StopWorker(request, reply);
  const Member& member = state_.membership.of(WorkerId{request.worker()});
  const bool drained = member.retired && member.incarnation == Incarnation{request.incarnation()};
  reply.set_retired(drained || request.worker() >= state_.rule.target());
}

void MembershipLead::StopWorker(const HeartbeatRequest& request, HeartbeatReply& reply) {
  const Step own{request.stops_before()};
  state_.membership.Stop(WorkerId{request.worker()}, Incarnation{request.incarnation()}, own);
  const std::optional<Step> stop = state_.membership.StopStep();
  if (!stop.has_value()) return;
  // By round, the first workers may have pushed a step that the others have not begun.
  const bool by_round = state_.rule.rule().fold == Fold::kRound;
  reply.set_stop_step(by_round ? stop->value : own.value);
}

}  // namespace thinwire
