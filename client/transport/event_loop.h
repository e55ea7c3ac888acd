// EventLoop: one thread that runs tasks, in the order in which they were posted or at a given time.
// State that only tasks use needs no lock. A class with such state says in its comment that it
// "lives on the event loop".
#ifndef THINWIRE_CLIENT_TRANSPORT_EVENT_LOOP_H_
#define THINWIRE_CLIENT_TRANSPORT_EVENT_LOOP_H_

#include <deque>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/time/clock.h"

namespace thinwire::client {

// Thread-safe.
class EventLoop {
 public:
  using Task = std::function<void()>;

  // Starts the thread. CLOCK must outlive the loop and must be a running clock, not a ManualClock.
  explicit EventLoop(Clock& clock);
  ~EventLoop() { Stop(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs TASK after the tasks posted before it. Drops TASK if Stop was called.
  void Post(Task task);
  // Runs TASK at time AT or soon after, before any posted tasks that have not started at that time.
  void PostAt(absl::Time at, Task task);
  // Posts TASK and blocks until TASK has run, or until TASK was dropped because the loop has
  // stopped. REQUIRES: not called from a task.
  void Run(const Task& task);

  // Blocks until the running task returns, and drops all other tasks. Idempotent. REQUIRES: not
  // called from a task.
  void Stop();

  absl::Time Now() { return clock_.Now(); }

 private:
  void RunTasks();
  // Blocks until a task is due and moves it to TASK. Returns false once the loop has stopped.
  bool NextTask(Task& task);

  Clock& clock_;
  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  std::multimap<absl::Time, Task> timed_ ABSL_GUARDED_BY(mu_);
  absl::CondVar changed_;
  std::thread thread_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_EVENT_LOOP_H_
