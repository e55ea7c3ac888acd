// Loop: one thread that runs tasks, in the order in which they were posted or at a time. What lives
// on a loop needs no lock: only tasks touch it.
#ifndef THINWIRE_CLIENT_LOOP_H_
#define THINWIRE_CLIENT_LOOP_H_

#include <deque>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"

namespace thinwire::client {

// Thread-safe.
class Loop {
 public:
  using Task = std::function<void()>;

  // CLOCK outlives the loop, and its time passes by itself.
  explicit Loop(Clock& clock);
  ~Loop() { Stop(); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs TASK after those posted before. After Stop: drops it.
  void Post(Task task);
  // Runs TASK at AT or soon after, before what is posted later than that.
  void PostAt(absl::Time at, Task task);
  // Posts TASK and returns when it has run, or was dropped. REQUIRES: not called from a task.
  void Run(const Task& task);

  // Returns when the task at hand is done; the others are dropped. Idempotent. REQUIRES: not
  // called from a task.
  void Stop();

  absl::Time Now() { return clock_.Now(); }

 private:
  void Serve();
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

#endif  // THINWIRE_CLIENT_LOOP_H_
