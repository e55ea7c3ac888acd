#include "common/time/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace thinwire {

class ThreadPool::PoolExecutor final : public Executor {
 public:
  explicit PoolExecutor(ThreadPool& pool) : pool_(pool) {}
  ~PoolExecutor() override { Stop(); }

  absl::Time Now() override { return pool_.Now(); }
  void Post(Task task) override {
    {
      absl::MutexLock lock(&pool_.mu_);
      if (stopped_ || !pool_.Add(*this, std::move(task))) return;
    }
    // Without the lock, for which the thread would wait as soon as it is awake.
    pool_.changed_.Signal();
  }
  void PostAt(absl::Time at, Task task) override {
    absl::MutexLock lock(&pool_.mu_);
    if (stopped_) return;
    pool_.timed_.emplace(at, TimedTask{this, std::move(task)});
    pool_.changed_.Signal();
  }
  void Stop() override;
  void Finish() override {
    {
      absl::MutexLock lock(&pool_.mu_, absl::Condition(this, &PoolExecutor::inactive));
      stopped_ = true;
    }
    Stop();
  }

 private:
  friend class ThreadPool;

  bool inactive() const { return !active_; }
  // Runs TASKS, except those that Stop drops, and destroys them.
  void RunAll(std::vector<Task>& tasks) {
    for (Task& task : tasks) {
      if (!stopped_) task();
      task = nullptr;
    }
    tasks.clear();
  }

  ThreadPool& pool_;
  // The members below change only under pool_.mu_.
  std::atomic<bool> stopped_ = false;
  bool active_ = false;  // in pool_.ready_, or a thread runs tasks
  std::vector<Task> tasks_;
};

void ThreadPool::PoolExecutor::Stop() {
  std::vector<Task> dropped;  // destroyed without the lock
  std::vector<TimedTask> dropped_timed;
  absl::MutexLock lock(&pool_.mu_);
  stopped_ = true;
  dropped.swap(tasks_);
  for (auto timed = pool_.timed_.begin(); timed != pool_.timed_.end();) {
    if (timed->second.executor != this) {
      ++timed;
      continue;
    }
    dropped_timed.push_back(std::move(timed->second));
    timed = pool_.timed_.erase(timed);
  }
  pool_.mu_.Await(absl::Condition(this, &PoolExecutor::inactive));
}

ThreadPool::ThreadPool(uint32_t thread_count) {
  if (thread_count == 0) thread_count = std::max(1u, std::thread::hardware_concurrency());
  for (uint32_t i = 0; i < thread_count; ++i) threads_.emplace_back([this] { RunExecutors(); });
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::unique_ptr<Executor> ThreadPool::Make() { return std::make_unique<PoolExecutor>(*this); }

bool ThreadPool::Add(PoolExecutor& executor, Executor::Task task) {
  executor.tasks_.push_back(std::move(task));
  if (executor.active_) return false;
  executor.active_ = true;
  ready_.push_back(&executor);
  return true;
}

void ThreadPool::RunExecutors() {
  std::vector<Executor::Task> tasks;
  absl::MutexLock lock(&mu_);
  while (PoolExecutor* const executor = NextExecutor(tasks)) {
    mu_.Unlock();
    executor->RunAll(tasks);
    mu_.Lock();
    if (executor->tasks_.empty()) {
      executor->active_ = false;
    } else {
      ready_.push_back(executor);
    }
  }
}

ThreadPool::PoolExecutor* ThreadPool::NextExecutor(std::vector<Executor::Task>& tasks) {
  while (!ending_) {
    absl::Duration wait = absl::InfiniteDuration();
    if (!timed_.empty()) wait = timed_.begin()->first - clock_.Now();
    if (wait <= absl::ZeroDuration()) {
      TimedTask due = std::move(timed_.begin()->second);
      timed_.erase(timed_.begin());
      Add(*due.executor, std::move(due.task));
      continue;
    }
    if (!ready_.empty()) {
      PoolExecutor* const executor = ready_.front();
      ready_.pop_front();
      tasks.swap(executor->tasks_);
      return executor;
    }
    changed_.WaitWithTimeout(&mu_, wait);
  }
  return nullptr;
}

}  // namespace thinwire
