// Executor runs tasks one at a time, in the order in which they were posted or at a given time.
// State that only tasks of one executor use needs no lock. A class with such state says in its
// comment on which executor it lives.
//
//   executor          made by       its tasks run on
//   ThreadExecutor    Threads       a thread of its own
//   PoolExecutor      ThreadPool    the threads of a pool, which many executors share
//   VirtualExecutor   VirtualTime   the thread that calls VirtualTime::RunNext, in virtual time
#ifndef THINWIRE_COMMON_TIME_EXECUTOR_H_
#define THINWIRE_COMMON_TIME_EXECUTOR_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/time/clock.h"

namespace thinwire {

// Thread-safe, except VirtualExecutor. The time is that of the executor's clock.
class Executor : public Clock {
 public:
  // A function that is called at most once. A task can own objects that cannot be copied.
  using Task = absl::AnyInvocable<void()>;

  // Runs TASK after all tasks that were posted earlier. Returns without waiting for TASK.
  virtual void Post(Task task) = 0;
  // Runs TASK at time AT or soon after. Tasks with equal times run in the order of the calls.
  virtual void PostAt(absl::Time at, Task task) = 0;
  // Runs all tasks that were posted earlier, and then TASK. Returns when TASK has returned, or when
  // it was dropped because the executor has stopped. REQUIRES: not called from a task.
  virtual void Run(absl::FunctionRef<void()> task);

  // Returns when the running task has returned. Destroys all other tasks, and those that are posted
  // later, without running them. Idempotent. REQUIRES: not called from a task.
  virtual void Stop() = 0;
  // Runs all tasks that are posted, also those that these tasks post, and stops. Drops tasks whose
  // time has not come. REQUIRES: not called from a task.
  virtual void Finish() = 0;
};

// Makes executors that share one clock, whose time Now() returns. Thread-safe, except VirtualTime.
class ExecutorFactory : public Clock {
 public:
  // The factory must outlive the executor. The destructor of the executor calls Stop().
  virtual std::unique_ptr<Executor> Make() = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TIME_EXECUTOR_H_
