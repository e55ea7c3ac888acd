// ThreadPool: some threads that run the tasks of many executors. The tasks of one executor run one
// at a time, on any of the threads.
#ifndef THINWIRE_COMMON_TIME_THREAD_POOL_H_
#define THINWIRE_COMMON_TIME_THREAD_POOL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/executor.h"

namespace thinwire {

// Makes executors with the machine's monotonic clock. Thread-safe. Stop, Run and Finish of an
// executor must not be called from a task of the pool.
class ThreadPool final : public ExecutorFactory {
 public:
  // Starts THREAD_COUNT threads; 0: one per core.
  explicit ThreadPool(uint32_t thread_count = 0);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  absl::Time Now() override { return clock_.Now(); }
  std::unique_ptr<Executor> Make() override;

 private:
  class PoolExecutor;
  struct TimedTask {
    PoolExecutor* executor;
    Executor::Task task;
  };

  void RunExecutors();
  // Blocks until an executor has tasks, and moves them to TASKS, which is empty. Returns null once
  // the pool ends.
  PoolExecutor* NextExecutor(std::vector<Executor::Task>& tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds TASK to the tasks of EXECUTOR. Returns whether a thread must run the executor, which had no
  // task.
  bool Add(PoolExecutor& executor, Executor::Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  SteadyClock clock_;
  absl::Mutex mu_;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  // The executors that have tasks, except those whose tasks a thread runs.
  std::deque<PoolExecutor*> ready_ ABSL_GUARDED_BY(mu_);
  std::multimap<absl::Time, TimedTask> timed_ ABSL_GUARDED_BY(mu_);
  absl::CondVar changed_;
  std::vector<std::thread> threads_;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_THREAD_POOL_H_
