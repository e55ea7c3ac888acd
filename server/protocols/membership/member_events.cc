#include "server/protocols/membership/member_events.h"

#include <glog/logging.h>

#include "server/core/event.h"

namespace thinwire {

void MemberEvents::LogJoin(WorkerId worker, Incarnation incarnation) {
  const auto more = lines_.Next(clock_.Now());
  if (!more.has_value()) return;
  LOG(INFO) << "worker " << worker << " joined as incarnation " << incarnation << ", "
            << state_.membership.Live().size() << " of " << state_.rule.target()
            << " workers are live" << *more;
}

void MemberEvents::LogLeave(WorkerId worker) {
  const auto more = lines_.Next(clock_.Now());
  if (!more.has_value()) return;
  LOG(INFO) << "worker " << worker << " left, " << state_.membership.Live().size()
            << " workers are live" << *more;
}

void MemberEvents::Renew(WorkerId worker, Incarnation incarnation, uint32_t member) {
  const LeaseState lease = state_.membership.Renew(worker, incarnation, clock_.Now(), member);
  if (lease == LeaseState::kFenced) {
    // Shards that the newer process has not joined yet count the sender as live again. The newer one
    // may end before it joins them.
    shards_.ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
  } else if (lease == LeaseState::kReturned) {
    if (const auto more = lines_.Next(clock_.Now())) {
      LOG(INFO) << "worker " << worker << " is live again" << *more;
    }
    shards_.ApplyToAll(ReturnEvent{worker, incarnation}, [] {});
  }
}

void MemberEvents::ExcusePause(absl::Duration pause) {
  LOG(WARNING) << "this server did not run for " << absl::Trunc(pause, absl::Milliseconds(1))
               << ": all leases are extended by this time";
  state_.membership.ExtendLeases(pause);
}

void MemberEvents::Suspend(absl::Time now) {
  if (!suspended_since_.has_value()) suspended_since_ = now;
}

void MemberEvents::Tick(absl::Time now) {
  if (suspended_since_.has_value()) state_.membership.ExtendLeases(now - *suspended_since_);
  suspended_since_.reset();
  for (const auto& [worker, incarnation] : state_.membership.Expire(now)) {
    if (const auto more = lines_.Next(now)) {
      LOG(WARNING) << "worker " << worker << " was silent for " << lease_
                   << ": the other workers no longer wait for it" << *more;
    }
    counters_.Update(
        [](StatusReply& counts) { counts.set_lease_expirations(counts.lease_expirations() + 1); });
    if (state_.membership.member_count() == 1) {
      shards_.ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
      continue;
    }
    state_.membership.Leave(worker, incarnation, {.failed = true}).IgnoreError();
    shards_.ApplyToAll(LeaveEvent{worker, incarnation}, [] {});
  }
}

void MemberEvents::FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) {
  const Member& member = state_.membership.of(WorkerId{request.worker()});
  // A worker with several members has left if one of them was lost.
  const bool lost = state_.membership.member_count() > 1 && member.left;
  reply.set_fenced(lost || Incarnation{request.incarnation()} < member.incarnation);
  for (const WorkerId live : state_.membership.Live()) reply.add_live(live.value);
}

}  // namespace thinwire
