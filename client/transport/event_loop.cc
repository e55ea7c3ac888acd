#include "client/transport/event_loop.h"

#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"

namespace thinwire::client {

EventLoop::EventLoop(Clock& clock) : clock_(clock), thread_([this] { RunTasks(); }) {}

void EventLoop::Post(Task task) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  changed_.Signal();
}

void EventLoop::PostAt(absl::Time at, Task task) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  timed_.emplace(at, std::move(task));
  changed_.Signal();
}

void EventLoop::Run(const Task& task) {
  absl::Notification done;
  // The deleter of `guard` notifies `done` when the loop destroys the task, either after running or
  // after dropping the task.
  std::shared_ptr<void> guard(nullptr, [&done](void*) { done.Notify(); });
  Post([guard = std::move(guard), &task] { task(); });
  done.WaitForNotification();
}

void EventLoop::Stop() {
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

void EventLoop::RunTasks() {
  Task task;
  while (NextTask(task)) {
    task();
    task = nullptr;
  }
}

bool EventLoop::NextTask(Task& task) {
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
