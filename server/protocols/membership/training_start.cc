#include "server/protocols/membership/training_start.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/event.h"
#include "server/core/shard.h"

namespace thinwire {

void TrainingStart::ContinueMembers(bool in_shards) {
  for (uint32_t w = 0; w < state_.membership.worker_count(); ++w) {
    const WorkerId worker{w};
    const Member& member = state_.membership.of(worker);
    if (member.incarnation == Incarnation{}) continue;
    if (!in_shards) model_.ApplyToAll(JoinEvent{worker, member.incarnation}, [] {});
    if (member.live()) model_.ApplyToAll(ReturnEvent{worker, member.incarnation}, [] {});
    if (member.left) model_.ApplyToAll(LeaveEvent{worker, member.incarnation}, [] {});
  }
  if (!state_.membership.Live().empty()) {
    first_join_ = clock_.Now();
    state_.membership.AwaitReturn();
  } else {
    BeginAgain();  // the run ended or was stopped in order
  }
}

void TrainingStart::BeginAgain() {
  for (const auto& [worker, incarnation] : state_.membership.ExpireAll()) {
    model_.ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
  }
  model_.ApplyToAll(ShutEvent{}, [] {});
  first_join_.reset();
  timed_out_ = false;
  had_begun_ = false;
  state_.begins_again = true;
}

void TrainingStart::Join(bool had_begun) {
  had_begun_ |= had_begun;
  if (!first_join_.has_value()) first_join_ = clock_.Now();
}

void TrainingStart::Tick(absl::Time now) {
  if (timed_out_ || !first_join_.has_value()) return;
  // After a rollback to the first step, the workers that come back do so within a lease.
  const absl::Duration patience = had_begun_ ? lease_ : start_timeout_;
  if (now - *first_join_ < patience) return;
  timed_out_ = true;
  const size_t live_count = state_.membership.Live().size();
  const uint32_t target = state_.rule.target();
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const auto is_shut = [](const ShardHost&, const Shard& shard) { return shard.open() ? 0 : 1; };
  model->ForAllShards<int>(is_shut, [model, patience, live_count,
                                     target](const std::vector<int>& shut) {
    if (std::ranges::find(shut, 1) == shut.end()) return;
    model->SubmitToAll(OpenEvent{}, [](const std::vector<Effects>&) {});
    if (live_count < target) {
      LOG(WARNING) << "no other worker has joined for " << patience << ": training begins with the "
                   << live_count << " of " << target << " workers that are live";
    } else {
      LOG(WARNING)
          << "all " << target << " workers are live, but after " << patience
          << " training has not begun: the first parameters are missing. Those of a site come "
             "from the servers of the upper job";
    }
  });
}

}  // namespace thinwire
