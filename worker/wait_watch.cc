#include "worker/wait_watch.h"

#include <utility>

namespace thinwire {

WaitWatch::WaitWatch(std::function<std::string()> waiting,
                     std::function<void(const std::string&)> changed, absl::Duration interval)
    : waiting_(std::move(waiting)),
      changed_(std::move(changed)),
      interval_(interval),
      thread_([this] { Run(); }) {}

WaitWatch::~WaitWatch() {
  {
    absl::MutexLock lock(&mu_);
    ends_ = true;
  }
  thread_.join();
}

void WaitWatch::Run() {
  std::string last;
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (mu_.AwaitWithTimeout(absl::Condition(&ends_), interval_)) return;
    }
    std::string text = waiting_();
    if (text == last) continue;
    changed_(text);
    last = std::move(text);
  }
}

}  // namespace thinwire
