#include "server/edge/control_thread.h"

namespace thinwire {

void ControlThread::StartTicking(absl::Duration every, std::function<void()> tick) {
  Post([this, every, tick = std::move(tick)] {
    every_ = every;
    tick_ = tick;
    last_run_ = clock_.Now();
    Wait();
  });
}

void ControlThread::Wait() {
  timer_.expires_after(absl::ToChronoNanoseconds(every_));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    Run(tick_);
    Wait();
  });
}

void ControlThread::NoticeSuspension() {
  // A thread that does not tick has no reason to run.
  if (!last_run_.has_value()) return;
  const absl::Time now = clock_.Now();
  const absl::Duration pause = now - *std::exchange(last_run_, now);
  if (pause > limit_) suspended_(pause);
}

void ControlThread::Stop() {
  thread_.stop();
  thread_.join();
}

}  // namespace thinwire
