#include "server/job/control_executor.h"

namespace thinwire {

void ControlExecutor::StartTicking(absl::Duration every, std::function<void()> tick) {
  Post([this, every, tick = std::move(tick)] {
    every_ = every;
    tick_ = tick;
    last_run_ = clock_.Now();
    WaitForTick();
  });
}

void ControlExecutor::WaitForTick() {
  PostAt(Now() + every_, [this] {
    tick_();
    WaitForTick();
  });
}

void ControlExecutor::NoticeSuspension() {
  // An executor that does not tick has no reason to run.
  if (!last_run_.has_value()) return;
  const absl::Time now = clock_.Now();
  const absl::Duration pause = now - *std::exchange(last_run_, now);
  if (pause > limit_) suspended_(pause);
}

}  // namespace thinwire
