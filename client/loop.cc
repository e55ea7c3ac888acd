#include "client/loop.h"

#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"

namespace thinwire::client {

Loop::Loop(Clock& clock) : clock_(clock), thread_([this] { Serve(); }) {}

void Loop::Post(Task task) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  changed_.Signal();
}

void Loop::PostAt(absl::Time at, Task task) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  timed_.emplace(at, std::move(task));
  changed_.Signal();
}

void Loop::Run(const Task& task) {
  absl::Notification done;
  // Told when the posted task is destroyed, so that a dropped one counts as done.
  std::shared_ptr<void> guard(nullptr, [&done](void*) { done.Notify(); });
  Post([guard = std::move(guard), &task] { task(); });
  done.WaitForNotification();
}

void Loop::Stop() {
  std::deque<Task> tasks;
  std::multimap<absl::Time, Task> timed;
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    tasks.swap(tasks_);
    timed.swap(timed_);
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void Loop::Serve() {
  Task task;
  while (NextTask(task)) {
    task();
    task = nullptr;
  }
}

bool Loop::NextTask(Task& task) {
  absl::MutexLock lock(&mu_);
  while (!stopped_) {
    absl::Duration wait = absl::InfiniteDuration();
    if (!timed_.empty()) wait = timed_.begin()->first - clock_.Now();
    if (wait <= absl::ZeroDuration()) {
      task = std::move(timed_.begin()->second);
      timed_.erase(timed_.begin());
      return true;
    }
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
      return true;
    }
    changed_.WaitWithTimeout(&mu_, wait);
  }
  return false;
}

}  // namespace thinwire::client
