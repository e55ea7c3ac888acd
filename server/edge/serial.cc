#include "server/edge/serial.h"

#include <utility>

namespace thinwire {

void Serial::Run(absl::AnyInvocable<void()> work) {
  {
    absl::MutexLock lock(&mu_);
    waiting_.push_back(std::move(work));
    if (running_) return;
    running_ = true;
  }
  for (;;) {
    absl::AnyInvocable<void()> next;
    {
      absl::MutexLock lock(&mu_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  }
}

}  // namespace thinwire
