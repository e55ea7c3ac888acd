// ThreadExecutor: an Executor with a thread of its own. Threads makes them.
#ifndef THINWIRE_COMMON_TIME_THREAD_EXECUTOR_H_
#define THINWIRE_COMMON_TIME_THREAD_EXECUTOR_H_

#include <deque>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/executor.h"

namespace thinwire {

// Thread-safe. A task whose time has come runs before all posted tasks that have not started.
class ThreadExecutor final : public Executor {
 public:
  // Starts the thread. CLOCK must outlive the executor and must be a running clock, not a
  // ManualClock. NICE: the nice value of the thread is higher by this number.
  explicit ThreadExecutor(Clock& clock, int nice = 0);
  ~ThreadExecutor() override { Stop(); }
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  absl::Time Now() override { return clock_.Now(); }
  void Post(Task task) override;
  void PostAt(absl::Time at, Task task) override;
  void Stop() override;
  void Finish() override;

 private:
  void RunTasks();
  // Blocks until a task is due and moves it to TASK. Returns false once the executor has stopped,
  // and without a task once it finishes.
  bool NextTask(Task& task);

  Clock& clock_;
  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mu_);
  std::multimap<absl::Time, Task> timed_ ABSL_GUARDED_BY(mu_);
  absl::CondVar changed_;
  std::thread thread_;
};

// Makes executors with the machine's monotonic clock.
class Threads final : public ExecutorFactory {
 public:
  // NICE: that of the executors.
  explicit Threads(int nice = 0) : nice_(nice) {}

  absl::Time Now() override { return clock_.Now(); }
  std::unique_ptr<Executor> Make() override {
    return std::make_unique<ThreadExecutor>(clock_, nice_);
  }

 private:
  SteadyClock clock_;
  const int nice_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_THREAD_EXECUTOR_H_
