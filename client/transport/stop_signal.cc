#include "client/transport/stop_signal.h"

namespace thinwire::client {

void StopSignal::Set() {
  absl::MutexLock lock(&mu_);
  set_ = true;
}

bool StopSignal::is_set() const {
  absl::MutexLock lock(&mu_);
  return set_;
}

void StopSignal::Update(absl::FunctionRef<void()> change) {
  absl::MutexLock lock(&mu_);
  change();
}

bool StopSignal::WaitUntil(absl::FunctionRef<bool()> done, absl::Duration timeout) {
  const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return set_ || done(); };
  absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&ended), timeout);
  return done();
}

}  // namespace thinwire::client
