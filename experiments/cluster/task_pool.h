// TaskPool runs functions on threads of its own, each with its own LearningTask. A simulated worker
// starts to compute at one virtual time, and its result is needed at a later one: between the two,
// the thread computes while the simulation runs on. Thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_TASK_POOL_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_TASK_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "experiments/cluster/learning_task.h"

namespace thinwire::lab {

class TaskPool {
 public:
  // Errors: those of MAKE.
  static absl::StatusOr<std::unique_ptr<TaskPool>> Make(const MakeLearningTask& make,
                                                        uint32_t threads);
  // Waits for the running functions and drops the others.
  ~TaskPool();

  // Calls RUN on a thread of the pool. Functions start in the order of the calls.
  template <typename Result>
  std::future<Result> Submit(std::function<Result(LearningTask&)> run) {
    auto task = std::make_shared<std::packaged_task<Result(LearningTask&)>>(std::move(run));
    std::future<Result> result = task->get_future();
    Add([task = std::move(task)](LearningTask& learning) { (*task)(learning); });
    return result;
  }

  // Returns a LearningTask of the calling thread's own.
  LearningTask& own() { return *own_; }

 private:
  TaskPool() = default;
  void Add(std::function<void(LearningTask&)> run);
  void Loop(LearningTask& task);

  std::unique_ptr<LearningTask> own_;
  std::vector<std::unique_ptr<LearningTask>> tasks_;
  absl::Mutex mu_;
  std::deque<std::function<void(LearningTask&)>> waiting_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_TASK_POOL_H_
