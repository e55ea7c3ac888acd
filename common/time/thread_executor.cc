#include "common/time/thread_executor.h"

#include <glog/logging.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace thinwire {
namespace {

// Raises the nice value of the calling thread by NICE. On Linux, a nice value belongs to a thread.
void LowerPriority(int nice) {
  if (nice == 0) return;
  const auto thread = static_cast<id_t>(gettid());
  if (setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + nice) != 0) {
    PLOG(WARNING) << "cannot lower the priority of a thread";
  }
}

}  // namespace

ThreadExecutor::ThreadExecutor(Clock& clock, int nice)
    : clock_(clock), thread_([this, nice] {
        LowerPriority(nice);
        RunTasks();
      }) {}

void ThreadExecutor::Post(Task task) {
  {
    absl::MutexLock lock(&mu_);
    if (stopped_) return;
    tasks_.push_back(std::move(task));
  }
  // Without the lock, for which the thread would wait as soon as it is awake.
  changed_.Signal();
}

void ThreadExecutor::PostAt(absl::Time at, Task task) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  timed_.emplace(at, std::move(task));
  changed_.Signal();
}

void ThreadExecutor::Stop() {
  std::deque<Task> tasks;  // destroyed without the lock
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

void ThreadExecutor::Finish() {
  {
    absl::MutexLock lock(&mu_);
    finishing_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
  Stop();
}

void ThreadExecutor::RunTasks() {
  Task task;
  while (NextTask(task)) {
    task();
    task = nullptr;
  }
}

bool ThreadExecutor::NextTask(Task& task) {
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
    if (finishing_) return false;
    changed_.WaitWithTimeout(&mu_, wait);
  }
  return false;
}

}  // namespace thinwire
