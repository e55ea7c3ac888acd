#include "experiments/cluster/task_pool.h"

#include "common/base/status_macros.h"

namespace thinwire::lab {

absl::StatusOr<std::unique_ptr<TaskPool>> TaskPool::Make(const MakeLearningTask& make,
                                                         uint32_t threads) {
  auto pool = std::unique_ptr<TaskPool>(new TaskPool());
  ASSIGN_OR_RETURN(pool->own_, make());
  for (uint32_t i = 0; i < threads; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<LearningTask> task, make());
    pool->tasks_.push_back(std::move(task));
  }
  for (const auto& task : pool->tasks_) {
    pool->threads_.emplace_back([&pool = *pool, &task = *task] { pool.Loop(task); });
  }
  return pool;
}

TaskPool::~TaskPool() {
  {
    const absl::MutexLock lock(&mu_);
    ended_ = true;
    waiting_.clear();
  }
  for (std::thread& thread : threads_) thread.join();
}

void TaskPool::Add(std::function<void(LearningTask&)> run) {
  const absl::MutexLock lock(&mu_);
  waiting_.push_back(std::move(run));
}

void TaskPool::Loop(LearningTask& task) {
  while (true) {
    std::function<void(LearningTask&)> run;
    {
      const absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(
          +[](TaskPool* pool) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pool->mu_) {
            return pool->ended_ || !pool->waiting_.empty();
          },
          this));
      if (waiting_.empty()) return;
      run = std::move(waiting_.front());
      waiting_.pop_front();
    }
    run(task);
  }
}

}  // namespace thinwire::lab
